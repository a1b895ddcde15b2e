/** The page of an output: whether it is spent, and the runes that it holds or held. */
import type { OutputAnswer } from '../../serve/client/mirrorClient.ts';
import { groupDigits, shorten } from '../formatValues.ts';
import { el } from './dom.ts';
import type { Page, Source } from './lists.ts';
import { addressLink, apiSource, blockLink, elsewhere, facts, headOf, idWithCopy, linkTo, timeInFull, transactionLink } from './parts.ts';
import { RUNE_AMOUNT } from './table.ts';
import { tableOf } from './tableOf.ts';
import { transactionOf, type View } from './views.ts';

export async function outputPage(view: View, { mirror, manifest, signal }: Source): Promise<Page> {
  const { id } = view;
  const title = `Output ${shorten(id)}`;
  const head = headOf('Output');
  const transaction = transactionOf(id);
  if (manifest.lists?.outputs === undefined) {
    const text = 'This mirror does not have outputs. Mirrors have them if they have lists and their data is from a Bitcoin Core node.';
    const nodes = [head, el('p', { class: 'note' }, text), el('p', {}, linkTo(transaction, 'Show its transaction')), ...elsewhere(view)];
    return { title, said: title, nodes };
  }
  const answer = await mirror.output(id, { signal });
  const { block_height, address, location, runes, held } = answer;
  const [state, isUnspent] = stateOf(answer);
  const shown = isUnspent ? runes : (held ?? []);
  const nodes = [
    head,
    el('p', { class: 'state', 'data-open': String(isUnspent) }, state),
    facts([
      ['Outpoint', idWithCopy(id, 'output')],
      ['Address', address !== undefined ? addressLink(address) : location && 'none: its script has no address'],
      ['Transaction', transactionLink(transaction.id)],
      ['Block', location && blockLink(location.block_height)],
      ['Time', location && timeInFull(location.timestamp)],
      ['As of block', groupDigits(block_height)],
    ]),
    ...(shown.length === 0
      ? []
      : [tableOf('records balances-list', isUnspent ? 'Runes of this output' : 'Runes that this output held', RUNE_AMOUNT, [shown])]),
    apiSource(`runes/v1/outputs/${id}`),
    ...elsewhere(view),
  ];
  return { title, said: state, nodes };
}

/** Returns the state of an output as text, and whether the output holds runes. */
function stateOf({ spent, runes, held, block_height }: OutputAnswer): readonly [text: string, isUnspent: boolean] {
  if (runes.length > 0) return ['Unspent: it holds runes', true];
  if (spent === true) return ['Spent: it holds nothing now. These are the runes that it held', false];
  const tip = groupDigits(block_height);
  const unknown = held === null ? 'whether it held some before' : 'whether it exists';
  return [`No output of this name holds runes after block ${tip}. This mirror does not know ${unknown}`, false];
}
