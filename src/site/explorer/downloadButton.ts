/** The button that downloads the complete list of a page. */
import type { CsvList } from '../../lists/csv.ts';
import { groupDigits } from '../formatValues.ts';
import { el } from './dom.ts';
import { announce } from './parts.ts';

/** Number of lines to collect as text before they become a Blob, because browsers can move Blobs to the disk. */
const LINES_AT_ONCE = 1000;

/**
 * Creates a button that saves a list with `total` entries as CSV. `name` is part of the file's name. `read` yields the entries. The button
 * shows the progress, and the reason if the download fails.
 */
export function downloadButton(list: CsvList, name: string, total: number, read: () => AsyncIterable<object>): HTMLButtonElement {
  const text = 'Download CSV';
  const button = el('button', { type: 'button', class: 'download' }, text);
  button.addEventListener('click', async () => {
    button.disabled = true;
    try {
      const blob = await csvOf(list, read(), (count) => {
        button.textContent = `${groupDigits(count)} of ${groupDigits(total)}`;
      });
      save(blob, `${list.replace('rune_', '')}-${name.replace(/[^0-9A-Za-z]+/g, '-')}.csv`);
      button.textContent = text;
      announce('Downloaded the list');
    } catch (error) {
      button.textContent = 'Download failed: try again';
      button.title = error instanceof Error ? error.message : String(error);
      // If the user has opened another page, the download was aborted on purpose, so this is not announced.
      if (button.isConnected) announce(`The download failed: ${button.title}`);
    }
    button.disabled = false;
  });
  return button;
}

/** Reads all entries. Calls `show` with the number of entries so far. Rejects if reading an entry fails. */
async function csvOf(list: CsvList, entries: AsyncIterable<object>, show: (count: number) => void): Promise<Blob> {
  // Names the bundle in the output (`.js`), because esbuild leaves this import unchanged (src/site/assets.ts).
  const { csvColumns, csvLine, csvLines } = await import('./download.js');
  const parts: Blob[] = [];
  let [lines, count] = [[csvLine(csvColumns(list))], 0];
  for await (const entry of entries) {
    lines = lines.concat(csvLines(list, entry));
    count += 1;
    if (lines.length < LINES_AT_ONCE) continue;
    parts.push(new Blob(lines));
    lines = [];
    show(count);
  }
  return new Blob([...parts, ...lines], { type: 'text/csv;charset=utf-8' });
}

function save(file: Blob, name: string): void {
  const href = URL.createObjectURL(file);
  el('a', { href, download: name }).click();
  // Releases the file after a minute: the browser has opened it by then.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
