/**
 * True for an http or https URL without user, password, query and fragment. Looks for `?` and `#` in `href`, because
 * `search` and `hash` are also empty for a URL that ends with one of them.
 */
export const isPlainHttp = (url: URL): boolean =>
  /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' && !/[?#]/.test(url.href);
