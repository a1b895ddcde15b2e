/** Logs what a pull from a node will do, and whether the node is behind or syncing. */
import { count, type Log } from '../../cli/log.ts';
import type { ChainInfo } from './coreNode.ts';

/** State of the node and the folder before blocks are read. */
export interface Look {
  readonly chain: ChainInfo;
  /** Height of the last pulled block. */
  readonly height: number;
  /** Height of the last block to read. */
  readonly last: number;
  /** Number of pulled blocks that a reorganisation removed from the chain. */
  readonly replaced: number;
  /** True if the node has no new block, and lacks some of the pulled ones. */
  readonly isBehind: boolean;
}

/**
 * Logs the blocks to read if `before`, the last look, is undefined. Logs also whenever the node falls behind or begins
 * to sync. `name` is the name of the node.
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
