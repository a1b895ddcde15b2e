/** Computes the ledger digest of a model by the rules of docs/ledger.md. Uses no code of the program. */
import { createHash } from 'node:crypto';
import type { Model } from './model.ts';
import { compareRunes, shownSymbol } from './runes.ts';

/**
 * Returns the text of the ledger after a block, from which the digest is computed. The block may be as old as `rewind`
 * of the model allows.
 */
export function ledgerText(model: Model, network: string, height: number): string {
  const lines = ['rune-ledger/1', `network\t${network}`, 'rules\tord-1', `block\t${height}\t${model.block(height).hash}`];
  for (const rune of model.runes) {
    if (rune.height > height) continue;
    const { mints, burned, burnRows } = model.countsAt(rune, height);
    const { amount, cap, heightStart, heightEnd, offsetStart, offsetEnd } = rune.terms ?? {};
    const symbol = [...shownSymbol(rune)].map((one) => one.codePointAt(0)?.toString(16)).join(' ');
    const fields = [
      ...['rune', rune.number, rune.id, rune.letters, rune.spacedName, rune.divisibility, symbol, rune.turbo],
      ...[amount, cap, heightStart, heightEnd, offsetStart, offsetEnd].map((term) => term ?? ''),
      ...[rune.premine, rune.height, model.block(rune.height).hash, rune.txIndex, rune.txid, rune.timestamp, mints, burned, burnRows],
    ];
    lines.push(fields.join('\t'));
  }
  const outputs: { txid: string; vout: number; line: string }[] = [];
  for (const { outpoint, address, location, spentHeight, held } of model.outputs()) {
    if (location.height > height || (spentHeight !== null && spentHeight <= height)) continue;
    const runes = [...held].sort((a, b) => compareRunes(a.rune, b.rune)).map(({ rune, amount }) => `${rune.id}:${amount}`);
    const line = ['output', outpoint, location.height, location.txIndex, address ?? '-', ...runes].join('\t');
    outputs.push({ txid: outpoint.slice(0, 64), vout: Number(outpoint.slice(65)), line });
  }
  outputs.sort((a, b) => (a.txid < b.txid ? -1 : a.txid > b.txid ? 1 : a.vout - b.vout));
  // Pushes lines one by one, because a long chain has more outputs than a call can have arguments.
  for (const { line } of outputs) lines.push(line);
  return `${lines.join('\n')}\n`;
}

export const ledgerDigest = (model: Model, network: string, height: number): string =>
  createHash('sha256')
    .update(ledgerText(model, network, height))
    .digest('hex');
