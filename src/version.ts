/**
 * The version of this program, from package.json, so that it stands in one place.
 */
import packageJson from '../package.json' with { type: 'json' };

export const VERSION: string = packageJson.version;

/** What `server_version` of the status says. */
export const serverVersion = (version: string): string => `rune-activity-mirror v${version}`;
