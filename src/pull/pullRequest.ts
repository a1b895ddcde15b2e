/** What a pull is asked for. Imports only types, so that --help is fast. */
import type { ClientOptions } from './httpClient.ts';
import type { Check } from './node/checkOutputs.ts';
import type { RunBuild } from './node/followNode.ts';
import type { NodePullOptions } from './node/nodePull.ts';
import type { PullOptions } from './pullOptions.ts';

export const CHECKS = ['sample', 'all'] as const satisfies readonly Check[];

export interface PullRequest extends PullOptions, Omit<NodePullOptions, 'folder'>, Omit<ClientOptions, 'onRetry'> {
  /** An `http(s):` URL, which may end with `/runes/v1`; or the URL of a node. */
  readonly from: URL | NodeUrl;
  /** Server that has the blocks which the node has pruned. */
  readonly blockSource?: URL | undefined;
  /** Memory limit of the process, such as `1GB`. */
  readonly memoryLimit: string;
  /** Runs a build after each pull from a node. If given, the process pulls and builds until the signal aborts. */
  readonly runBuild?: RunBuild | undefined;
}

/** URL of a Bitcoin Core node. */
export class NodeUrl {
  constructor(readonly url: URL) {}
}
