/** Parses URLs of mirrors and nodes. */

/**
 * Parses an http or https URL without user, password, query and fragment. Returns undefined for other text, which a message should not
 * show: it may contain a password.
 */
export function plainUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // Looks for `?` and `#` in `href`, because `search` and `hash` are empty even if the URL ends with `?` or `#`.
  const isPlain =
    url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' && !/[?#]/.test(url.href);
  return isPlain ? url : undefined;
}

export const SITE_URL_RULE = 'must be an http or https URL without user, query and fragment, such as https://example.org/mirror/';

/** Normalises the public URL of a mirror, to which its paths are relative, so it ends with a slash. Undefined for an invalid URL. */
export const parseSiteUrl = (text: string): string | undefined => plainUrl(text)?.href.replace(/\/?$/, '/');
