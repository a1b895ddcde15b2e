/**
 * Verifies the digests of the ledger. Computes them again from the documents of the archive: other checks have already
 * compared these documents with the records.
 */
import { areFromNode } from '../engine/archive/ledgerDigest.ts';
import { digestOf } from '../engine/archive/readLedger.ts';
import type { StoredArchive } from '../engine/archive/storedArchive.ts';
import { lowerEnds } from '../format/levels.ts';
import { archivePath } from '../pages/filePaths.ts';
import { NETWORKS } from '../runes/networks.ts';
import type { Verification } from './verification.ts';

export async function verifyLedger({ manifest, blocks, findings, site }: Verification, archive: StoredArchive): Promise<void> {
  const { lists } = archive.root;
  const ledger = lists?.ledger;
  const path = archivePath(archive.name.root);
  if (lists?.start !== undefined && lists.outputs !== undefined && ledger === undefined)
    findings.add(`${path} lacks a digest of the ledger, by which its start could be checked`);
  if (lists === undefined || ledger === undefined) return;
  const { network, lower, ...newest } = ledger;
  const { firstHeight } = NETWORKS[network as keyof typeof NETWORKS] ?? { firstHeight: Number.POSITIVE_INFINITY };
  if (lists.outputs === undefined || !areFromNode(manifest.sources ?? [], lists.start === undefined ? firstHeight : lists.start.height + 1))
    findings.add(`${path} has a digest of the ledger, which its data does not allow`);
  const points = lower === undefined ? [newest] : [newest, lower];
  const heights = lowerEnds(lists.tip, lists).filter((height) => height >= (lists.start?.height ?? firstHeight));
  if (points.map(({ height }) => height).join() !== heights.join()) findings.add(`${path} has digests of the ledger at wrong blocks`);
  const hashes = new Map(blocks.map(({ height, hash }) => [height, hash]));
  // No record proves the ledger of the start (startOutputs.ts). But its documents must have the digest in `start`,
  // which other mirrors have for the same block.
  const start = lists.start === undefined || points.some(({ height }) => height === lists.start?.height) ? [] : [lists.start];
  for (const { height, hash, digest } of [...start, ...points]) {
    if (!heights.includes(height) && height !== lists.start?.height) continue;
    if ((hashes.get(height) ?? hash) !== hash) findings.add(`${path} has a digest of the ledger after block ${height} with a wrong hash`);
    try {
      const found = await digestOf(network, { height, hash }, lists, site.dialect, archive);
      if (found !== digest)
        findings.add(`${path} says that the ledger after block ${height} has the digest ${digest}, but it has ${found}`);
    } catch (error) {
      findings.addDamage(error);
    }
  }
}
