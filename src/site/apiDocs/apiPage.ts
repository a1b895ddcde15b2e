/** Script of the API page: requests the example of an endpoint when the reader opens its answer. */

const MOST_CHARACTERS = 6000;

/** Returns the answer to a request as text: indented JSON, cut if it is long, or why there is none. */
async function answerTo(target: string): Promise<string> {
  try {
    const response = await fetch(new URL(`../${target}`, import.meta.url));
    const status = `${response.status} ${response.statusText}`.trim();
    const body = await response.text();
    if (!/json/.test(response.headers.get('content-type') ?? '')) return `${status}: this host has only files, and none at this path.`;
    const text = JSON.stringify(JSON.parse(body), null, 2);
    return `${status}\n${text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}\n…` : text}`;
  } catch (error) {
    return `The answer cannot be loaded (${error instanceof Error ? error.message : error}).`;
  }
}

for (const details of document.querySelectorAll<HTMLDetailsElement>('details[data-target]')) {
  details.addEventListener('toggle', async () => {
    const place = details.querySelector('pre');
    if (details.open && place !== null) place.textContent = await answerTo(details.dataset['target'] ?? '');
  });
}
