/** Saves a complete list as a CSV file. Is a separate bundle, which loads with the first download. */
import { type CsvList, csvColumns, csvLine, csvLines } from '../../lists/csv.ts';
import { el } from './dom.ts';

/** Number of lines to collect as text before they become a Blob, because browsers can move Blobs to the disk. */
const LINES_AT_ONCE = 1000;

/**
 * Reads all entries, and offers the file to the user. Calls `show` with the number of entries so far. Rejects if
 * reading an entry fails.
 */
export async function saveCsv(list: CsvList, name: string, entries: AsyncIterable<object>, show: (count: number) => void): Promise<void> {
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
  const href = URL.createObjectURL(new Blob([...parts, ...lines], { type: 'text/csv;charset=utf-8' }));
  el('a', { href, download: `${name}.csv` }).click();
  // Releases the file after a minute: the browser has opened it by then.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
