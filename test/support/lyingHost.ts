/** Two signed builds of a chain, in memory, and hosts that serve wrong versions of the builds' files. */

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, inflateRawSync } from 'node:zlib';
import type { Manifest } from '../../src/contract/schemas.ts';
import { manifestFile } from '../../src/output/manifest.ts';
import { makeKey, noteTime, parseSigningKey, withNote } from '../../src/output/signingKeys.ts';
import type { Mirror } from '../../src/serve/client/mirrorClient.ts';
import { MANIFEST } from './archives.ts';
import { filesBelow, testBuild } from './build.ts';
import { limitsWith } from './limits.ts';
import { writeRows } from './nodeRows.ts';
import { extended, memoryOf } from './runeChains.ts';
import { integersFor } from './seed.ts';

/** Files of a build, by path. */
export type Files = ReadonlyMap<string, Buffer>;

export const KEY = makeKey('mirror.example.org', Buffer.alloc(32, 1));
export const STRANGER = makeKey('mirror.example.org', Buffer.alloc(32, 2));

/** Changes the manifest of a build, and adds a note that all keys sign. Returns all files of the build. */
export function signedFiles(files: Files, time: string, change: Partial<Manifest> = {}, ...keys: readonly (typeof KEY)[]): Files {
  const manifest = JSON.parse(String(files.get(MANIFEST))) as Manifest;
  delete manifest.note;
  const signers = (keys.length > 0 ? keys : [KEY]).map(({ privateText }) => parseSigningKey(privateText, 'the test'));
  const signed = withNote({ ...manifest, ...change }, { network: 'regtest', time: noteTime(new Date(time), undefined) }, signers);
  return new Map([...files, [MANIFEST, manifestFile(signed)[1]]]);
}

/** Reads all files of a build, by path. */
export const readFiles = (out: string): Files => new Map(filesBelow(out).map((path) => [path, readFileSync(join(out, path))]));

/**
 * Forges a file of an archive: its first page or member of documents gets a changed digit. The forged content has valid checksums and the
 * same size, but the tail still has the digests of the right content. Only these digests reveal the change.
 */
export function forged(file: Buffer, draw: (below: number) => number): Buffer {
  const copy = Buffer.from(file);
  const { buffer, engine } = inflateRawSync(copy.subarray(10), { info: true }) as unknown as {
    buffer: Buffer;
    engine: { bytesWritten: number };
  };
  // A gzip member has ten bytes before the compressed data. After the data it has a checksum and a size, of four bytes each.
  const member = 10 + engine.bytesWritten + 8;
  const digits = [...buffer.toString('latin1').matchAll(/[0-9]/g)].map(({ index }) => index);
  const at = digits[draw(digits.length)] ?? 0;
  buffer[at] = 48 + (((buffer[at] ?? 0) - 48 + 1 + draw(9)) % 10);
  const gzip = gzipSync(buffer, { level: 9 });
  const space = member - gzip.length - 2;
  if (space < 0) return copy;
  // The new member may be shorter. An extra field in its header, which readers skip, makes it as long as the old one.
  const field = Buffer.alloc(2 + space);
  field.writeUInt16LE(space);
  const header = Buffer.from(gzip.subarray(0, 10));
  header[3] = 4;
  Buffer.concat([header, field, gzip.subarray(10)]).copy(copy);
  return copy;
}

/** Signing times of the older and the newer build. */
export const TIMES = ['2026-11-24T00:00:00Z', '2026-11-24T01:00:00Z'] as const;

/** Builds a chain, then the longer chain after a reorganisation. Returns the files of both builds, signed. */
export async function signedBuilds(work: string, objectSize: number): Promise<readonly [older: Files, newer: Files]> {
  const draw = integersFor(`builds of ${objectSize}`);
  const limits = limitsWith({
    listPage: 4,
    tableLevels: { steps: [32, 8], unsettled: 2 },
    listLevels: { steps: [64, 16, 4], unsettled: 4 },
  });
  const first = extended([], 70, draw, 3);
  const options = { inputs: [join(work, 'in')], layout: 'archive', lists: true, objectSize, limits } as const;
  const builds: Files[] = [];
  for (const [i, chain] of [first, extended(first.slice(0, 66), 7, draw, 3)].entries()) {
    writeRows(memoryOf(chain), join(work, 'in'));
    await testBuild(join(work, 'out'), options);
    builds.push(signedFiles(readFiles(join(work, 'out')), TIMES[i] ?? ''));
  }
  const [older = new Map(), newer = new Map()] = builds;
  return [older, newer];
}

/** Returns a `fetch` for a host whose files `fileOf` returns by path. Answers range requests unless `hasRanges` is false. */
export function fetchOver(fileOf: (path: string) => Buffer | undefined, hasRanges = true): typeof fetch {
  return async (input, init) => {
    const file = fileOf(new URL(String(input)).pathname.slice(1));
    if (file === undefined) return new Response('', { status: 404 });
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(new Headers(init?.headers).get('range') ?? '') ?? [];
    if (from === undefined || !hasRanges) return new Response(new Uint8Array(file));
    if (Number(from) >= file.length) return new Response('', { status: 416 });
    const part = file.subarray(Number(from), Number(to) + 1);
    return new Response(new Uint8Array(part), {
      status: 206,
      headers: { 'content-range': `bytes ${from}-${Number(from) + part.length - 1}/${file.length}` },
    });
  };
}

/** Ids in an entry of any list. */
interface Named {
  readonly id: string;
  readonly name: string;
  readonly number: number;
  readonly address: string;
  readonly output: string;
  readonly location: { readonly block_hash: string; readonly tx_id: string };
}

/** Returns request targets for every endpoint of a mirror with all lists, including targets with unknown ids. */
export async function everyTarget(mirror: Mirror): Promise<string[]> {
  const json = async (target: string) => JSON.parse((await mirror.get(`/runes/v1/${target}`)).body) as { total: number; results: Named[] };
  const { heights } = await mirror.manifest();
  const lists = [
    'etchings?limit=60',
    'etchings?limit=5&offset=3',
    'etchings/999',
    'etchings/NOSUCHRUNE/holders',
    `outputs/${'ab'.repeat(32)}:0`,
  ];
  for (const { id, name, number } of (await json('etchings?limit=60')).results.slice(0, 12)) {
    lists.push(
      `etchings/${id}`,
      `etchings/${name}/activity?limit=3&offset=2`,
      `etchings/${number}/holders?limit=3`,
      `etchings/${id}/activity?limit=60`,
    );
    for (const { address } of (await json(`etchings/${id}/holders?limit=60`)).results.slice(0, 2)) {
      lists.push(`etchings/${id}/holders/${address}`, `etchings/${id}/activity/${address}`, `addresses/${address}/balances`);
      lists.push(`addresses/${address}/activity?limit=7`, `addresses/${address}/outputs?limit=60`, `etchings/${id}/holders/nobody`);
      for (const { output } of (await json(`addresses/${address}/outputs?limit=60`)).results.slice(0, 2)) lists.push(`outputs/${output}`);
    }
  }
  for (const [first, last] of heights) {
    for (let height = first; height <= last; height += 3) {
      lists.push(
        `blocks/${height}/activity?limit=60`,
        `blocks/${height}/activity?limit=2&offset=1`,
        `blocks/${height}/activity?operation_type=send`,
      );
      const [record] = (await json(`blocks/${height}/activity`)).results;
      if (record !== undefined)
        lists.push(`blocks/${record.location.block_hash}/activity`, `transactions/${record.location.tx_id}/activity`);
    }
  }
  const unknown = (n: number) => createHash('sha256').update(`unknown ${n}`).digest('hex');
  for (let n = 0; n < 20; n += 1)
    lists.push(`transactions/${unknown(n)}/activity`, `blocks/${unknown(n)}/activity`, `addresses/bc1q${n}/balances`);
  lists.push(
    'blocks/16000000/activity',
    'addresses/nobody/activity',
    'addresses/nobody/outputs',
    'etchings?limit=61',
    'etchings/1:1/activity',
  );
  return [...new Set(lists)].map((target) => `/runes/v1/${target}`);
}
