/** Parses the public URL of a mirror, to which all of its paths are relative. */
import { isPlainHttp } from './plainUrl.ts';

export const SITE_URL_RULE = 'must be an http or https URL without user, query and fragment, such as https://example.org/mirror/';

/** Normalises a site URL for the manifest: the result ends with a slash. Undefined for an invalid URL. */
export function parseSiteUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (!isPlainHttp(url)) return undefined;
  return url.href.endsWith('/') ? url.href : `${url.href}/`;
}
