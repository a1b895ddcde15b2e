/** Parts of every HTML page of a mirror. */

export const HTML_START = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">`;

/** Logo: the rune Raido, drawn as lines because few fonts have runic letters. */
const MARK =
  '<svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true"><rect width="32" height="32" rx="7" fill="#3d36a4"/><path d="M11.5 25V7l9 5-9 5 9.5 8" fill="none" stroke="#fff" stroke-width="2.6" stroke-linejoin="round" stroke-linecap="round"/></svg>';

export const ICON = `data:image/svg+xml,${encodeURIComponent(MARK.replace('<svg ', '<svg xmlns="http://www.w3.org/2000/svg" '))}`;

/** Returns the first row of a page: the mirror's name, and links to its parts. `root` is the relative URL of the mirror. */
export const barOf = (root: string): string => `<div class="bar">
<a class="brand" href="${root}">${MARK}<span>Rune activity mirror</span></a>
<nav aria-label="Site"><a class="scripted" href="${root}?runes">Runes</a><a href="${root}docs/">API</a><a href="${root}#ask">Use it</a></nav>
</div>`;

/** Escapes text for HTML, also inside of attributes in double quotes. */
export const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
