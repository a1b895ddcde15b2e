/** Tells the user what a pull from a node will do, and when the node has less than its network. */
import { count, type Log } from '../../cli/log.ts';
import type { ChainInfo } from './node.ts';

/** A look at the node, before blocks are read. */
export interface Look {
  readonly chain: ChainInfo;
  /** Height of the last block that was read. */
  readonly height: number;
  /** Height of the last block to read. */
  readonly last: number;
  /** Number of blocks that a reorganisation removed. */
  readonly replaced: number;
  /** True when the node has only blocks that were read, but not all of these. */
  readonly isBehind: boolean;
}

/**
 * Logs the work at the first look at the node `name`. Logs that the node is behind or syncing when it was not at the look
 * before.
 */
export function announce(name: string, log: Log, look: Look, before: Look | undefined): void {
  const { chain, height, last, replaced, isBehind } = look;
  if (before === undefined) {
    const blocks = Math.max(last - height, 0);
    const todo = `${blocks === 0 ? 'nothing' : count(blocks, 'block')} to read${replaced === 0 ? '' : `, ${count(replaced, 'block')} replaced`}`;
    const fields = { source: name, tip: chain.blocks, first: height + 1, last, blocks, replaced };
    log.info('looked', `${name} has blocks up to ${chain.blocks}: ${todo}.`, fields);
  }
  if (isBehind && before?.isBehind !== true)
    log.notice(`${name} is behind: its last block is ${chain.blocks}, and block ${height} was pulled before`);
  if (chain.isSyncing && before?.chain.isSyncing !== true) {
    const state =
      chain.blocks < chain.headers ? `it has ${chain.blocks} of ${chain.headers} blocks` : `its last block, ${chain.blocks}, is old`;
    log.notice(`${name} is still syncing: ${state}. Run the pull again when it has more`);
  }
}
