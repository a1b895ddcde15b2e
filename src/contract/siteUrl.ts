/**
 * The public address of a mirror, below which its paths lie.
 */

/** Why a text is no address of a mirror; what is said of it in errors. */
export const SITE_URL_RULE = 'must be an http or https URL without user, query and fragment, such as https://example.org/mirror/';

/** The address as the manifest has it: normalised, with a slash at its end. Undefined for a text that is none. */
export function parseSiteUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  // An empty query or fragment leaves its sign in the address and nothing in its part.
  if (!/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '' || /[?#]/.test(url.href)) return undefined;
  return url.href.endsWith('/') ? url.href : `${url.href}/`;
}
