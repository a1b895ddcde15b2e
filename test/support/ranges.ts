/** Range requests for a Parquet file. The tests of every host that runs this program's code send them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';

/** Returns the path of a published file of rows. `begin` is the beginning of its name: a height, `runes` or `index`. */
export const rowsFile = (dist: string, begin: string): string =>
  `rows/${readdirSync(join(dist, 'rows')).find((name) => name.startsWith(`${begin}-`))}`;

/**
 * Sends range requests to a host, which listens at `port` of this machine, for a Parquet file of the sample. `dist` is the folder of the
 * build.
 */
export async function checkRanges(port: number, dist: string): Promise<void> {
  const file = rowsFile(dist, '2000007');
  const url = `http://127.0.0.1:${port}/${file}`;
  const bytes = readFileSync(join(dist, file));
  const size = bytes.length;
  const ask = async (headers: Record<string, string>, method = 'GET') => {
    const response = await fetch(url, { method, headers: { 'accept-encoding': 'gzip', ...headers } });
    const header = (name: string) => response.headers.get(name);
    return {
      status: response.status,
      place: header('content-range'),
      length: Number(header('content-length')),
      body: Buffer.from(await response.arrayBuffer()),
      etag: header('etag') ?? '',
      encoding: header('content-encoding'),
      accepts: header('accept-ranges'),
      type: header('content-type'),
      exposed: header('access-control-expose-headers'),
    };
  };
  const common = { encoding: null, accepts: 'bytes', type: 'application/vnd.apache.parquet', exposed: 'content-range, etag' };
  const whole = await ask({});
  expect(whole).toMatchObject({ ...common, status: 200, place: null, length: size, etag: expect.stringMatching(/^".+"$/) });
  expect(whole.body.equals(bytes)).toBe(true);
  expect(await ask({}, 'HEAD')).toMatchObject({ ...common, status: 200, length: size, etag: whole.etag });
  // Only GET requests can have a range.
  expect(await ask({ range: 'bytes=0-3' }, 'HEAD')).toMatchObject({ ...common, status: 200, place: null, length: size });

  for (const [range, start, end] of [
    ['bytes=0-3', 0, 3],
    ['bytes=0-0', 0, 0],
    [`bytes=${size - 8}-${size - 1}`, size - 8, size - 1],
    ['bytes=-8', size - 8, size - 1],
    [`bytes=-${size + 5}`, 0, size - 1],
    ['bytes=100-', 100, size - 1],
    [`bytes=100-${size * 3}`, 100, size - 1],
  ] as const) {
    for (const headers of [{ range }, { range, 'if-range': whole.etag }]) {
      const part = await ask(headers);
      const expected = { ...common, status: 206, place: `bytes ${start}-${end}/${size}`, length: end - start + 1, etag: whole.etag };
      expect(part, range).toMatchObject(expected);
      expect(part.body.equals(bytes.subarray(start, end + 1)), range).toBe(true);
    }
  }
  for (const range of ['bytes=5-2', 'bytes=0-1,4-5', 'lines=0-1', 'bytes=-', 'bytes=x-1', '0-1']) {
    expect(await ask({ range }), range).toMatchObject({ ...common, status: 200, place: null, length: size });
  }
  for (const condition of ['"another"', `W/${whole.etag}`, 'Wed, 21 Oct 2015 07:28:00 GMT']) {
    expect(await ask({ range: 'bytes=0-3', 'if-range': condition }), condition).toMatchObject({ ...common, status: 200, length: size });
  }
  for (const range of [`bytes=${size}-`, `bytes=${size + 100}-${size + 200}`, 'bytes=-0']) {
    expect(await ask({ range }), range).toMatchObject({ status: 416, place: `bytes */${size}` });
  }
  for (const headers of [{}, { range: 'bytes=0-3' }]) {
    const known = await ask({ ...headers, 'if-none-match': whole.etag });
    expect([known.status, known.body.length, known.etag]).toEqual([304, 0, whole.etag]);
  }
}
