/** The button that downloads the complete list of a page. */
import type { CsvList } from '../../lists/csv.ts';
import { groupDigits } from '../formatValues.ts';
import { el } from './dom.ts';
import { announce } from './parts.ts';

/**
 * Creates a button that saves a list with `total` entries as CSV. `name` is part of the file's name. `read` yields the
 * entries. The button shows the progress, and the reason if the download fails.
 */
export function downloadButton(list: CsvList, name: string, total: number, read: () => AsyncIterable<object>): HTMLButtonElement {
  const text = 'Download CSV';
  const button = el('button', { type: 'button', class: 'download' }, text);
  button.addEventListener('click', async () => {
    button.disabled = true;
    try {
      // Names the bundle in the output (`.js`), because esbuild leaves this import unchanged (src/site/assets.ts).
      const { saveCsv } = await import('./download.js');
      await saveCsv(list, `${list.replace('rune_', '')}-${name.replace(/[^0-9A-Za-z]+/g, '-')}`, read(), (count) => {
        button.textContent = `${groupDigits(count)} of ${groupDigits(total)}`;
      });
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
