/** Opens a node and the state of the folder, then pulls once or follows the node. */
import { homedir } from 'node:os';
import { env } from 'node:process';
import type { Log } from '../../cli/log.ts';
import type { Progress } from '../../cli/progress.ts';
import type { Store } from '../../store/duckdb.ts';
import type { PullResult } from '../pull.ts';
import type { CallOptions } from './calls.ts';
import { build, follow } from './follow.ts';
import { BitcoinNode } from './node.ts';
import { NodePull, type NodePullOptions } from './nodePull.ts';

export interface NodeRequest extends NodePullOptions, Pick<CallOptions, 'url' | 'cookie' | 'retries' | 'timeoutMs' | 'pauseMs'> {
  /** Arguments for the build after each pull. Undefined to pull once. */
  readonly follow: readonly string[] | undefined;
}

/** Pulls from a node. Calls `done` after the first pull. With `follow`, goes on until the signal aborts. */
export async function pullFromNode(
  request: NodeRequest,
  store: Store,
  log: Log,
  progress: Progress,
  done: (result: PullResult) => void,
): Promise<PullResult> {
  // Reports wrong arguments before a first pull, which takes hours.
  if (request.follow !== undefined) await build({ ...request, args: [...request.follow, '--help'] }, log);
  const node = await BitcoinNode.open({
    ...request,
    environment: env,
    home: homedir(),
    onNotice: (message) => log.notice(message),
  });
  let pull: NodePull | undefined;
  try {
    pull = await NodePull.open(request, node, store, log);
    const result = await pull.run(progress);
    done(result);
    if (request.follow === undefined) await pull.settle();
    else await follow({ ...request, args: request.follow }, node, pull, log, progress);
    return result;
  } finally {
    pull?.close();
    node.close();
  }
}
