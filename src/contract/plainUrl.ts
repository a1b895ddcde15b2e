/**
 * True for an http or https URL without user, password, query and fragment. Looks for `?` and `#` in `href`, because
 * `search` and `hash` are empty even if the URL ends with `?` or `#`.
 */
export const isPlainHttp = (url: URL): boolean =>
  /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' && !/[?#]/.test(url.href);
