/**
 * Verifies the digests of the ledger. Computes them again from the documents of the archive: other checks have already
 * compared these documents with the records.
 */
import { areFromNode } from '../engine/archive/ledgerDigest.ts';
import { digestOf } from '../engine/archive/readLedger.ts';
import { lowerEnds } from '../format/levels.ts';
import { NETWORKS } from '../runes/networks.ts';
import { orLaterFinding } from './findings.ts';
import type { ListsCheck } from './verification.ts';

export async function verifyLedger({ manifest, blocks, findings, site, archive, lists, rootPath }: ListsCheck): Promise<void> {
  const { ledger } = lists;
  if (lists.start !== undefined && lists.outputs !== undefined && ledger === undefined)
    findings.add(`${rootPath} lacks a digest of the ledger, by which its start could be checked`);
  if (ledger === undefined) return;
  const { network, lower, ...newest } = ledger;
  const { firstHeight } = NETWORKS[network as keyof typeof NETWORKS] ?? { firstHeight: Number.POSITIVE_INFINITY };
  if (lists.outputs === undefined || !areFromNode(manifest.sources ?? [], lists.start === undefined ? firstHeight : lists.start.height + 1))
    findings.add(`${rootPath} has a digest of the ledger, which its data does not allow`);
  const points = lower === undefined ? [newest] : [newest, lower];
  const heights = lowerEnds(lists.tip, lists).filter((height) => height >= (lists.start?.height ?? firstHeight));
  if (points.map(({ height }) => height).join() !== heights.join()) findings.add(`${rootPath} has digests of the ledger at wrong blocks`);
  const hashes = new Map(blocks.map(({ height, hash }) => [height, hash]));
  // No records prove the ledger of the start (storedOutputs.ts). But the digest of its documents must be the digest in
  // `start`, and other mirrors have the same digest for this block.
  const start = lists.start === undefined || points.some(({ height }) => height === lists.start?.height) ? [] : [lists.start];
  for (const { height, hash, digest } of [...start, ...points]) {
    if (!heights.includes(height) && height !== lists.start?.height) continue;
    if ((hashes.get(height) ?? hash) !== hash)
      findings.add(`${rootPath} has a digest of the ledger after block ${height} with a wrong hash`);
    const found = await orLaterFinding(findings, () => digestOf(network, { height, hash }, lists, site.dialect, archive));
    if (found !== undefined && found !== digest)
      findings.add(`${rootPath} says that the ledger after block ${height} has the digest ${digest}, but it has ${found}`);
  }
}
