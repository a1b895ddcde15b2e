/**
 * The version of this program, read from package.json.
 */
import packageJson from '../package.json' with { type: 'json' };

export const VERSION: string = packageJson.version;

export const serverVersion = (version: string): string => `rune-activity-mirror v${version}`;
