/**
 * True for an http or https URL without user, password, query and fragment. Tests `href`, because `search` and `hash`
 * are empty for a URL that ends with `?` or `#`.
 */
export const isPlainHttp = (url: URL): boolean =>
  /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' && !/[?#]/.test(url.href);
