/**
 * True for an http or https URL without user, password, query and fragment. Looks for `?` and `#` in `href`, because
 * `search` and `hash` are empty even if the URL ends with `?` or `#`.
 */
export const isPlainHttp = (url: URL): boolean =>
  /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' && !/[?#]/.test(url.href);

/** Parses such a URL. Returns undefined for other text, which a message should not show: it may contain a password. */
export function plainUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && isPlainHttp(url) ? url : undefined;
}
