/** Mirrors that follow a fake node. One mirror has all history. Other mirrors start from the ledger of a mirror. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Manifest } from '../../src/contract/schemas.ts';
import { temporaryFolder, testBuild } from './build.ts';
import { type FakeBlock, FakeNode } from './fakeNode.ts';
import { limitsWith } from './limits.ts';
import { startPlainFiles } from './plainFiles.ts';
import { testPull } from './pull.ts';

const limits = limitsWith({ listLevels: { steps: [40, 20, 4], unsettled: 2 }, startOutputs: 7, listPage: 3 });

export class StartedPulls {
  readonly limits = limits;
  readonly #url: string;
  readonly node: FakeNode;
  /** Input and output of the mirror with all history. */
  readonly complete = temporaryFolder();
  readonly all = join(temporaryFolder(), 'dist');

  private constructor(node: FakeNode) {
    this.node = node;
    this.#url = `core:${node.url}`;
  }

  static async begin(chain: readonly FakeBlock[]): Promise<StartedPulls> {
    return new StartedPulls(await FakeNode.start(chain, { network: 'regtest' }));
  }

  build(out: string, input: string, options = {}) {
    return testBuild(out, { inputs: [input], layout: 'archive', lists: true, limits, ...options });
  }

  /** Pulls new blocks to a folder. */
  pull(to: string, options = {}) {
    return testPull(this.#url, to, { limits, confirmations: 100, ...options });
  }

  /** Pulls new blocks to the mirror with all history, and builds it. */
  async follow(options = {}): Promise<Manifest> {
    await this.pull(this.complete);
    return (await this.build(this.all, this.complete, options)).manifest;
  }

  /**
   * Makes a mirror of the blocks up to `last`, and pulls to a new folder that starts from it. Returns height and digest
   * of the start.
   */
  async start(to: string, last: number): Promise<{ height: number; digest: string }> {
    const [input, out] = [temporaryFolder(), join(temporaryFolder(), 'donor')];
    await this.pull(input, { wanted: { from: undefined, to: last } });
    await this.build(out, input);
    return this.startAt(to, out);
  }

  /**
   * Pulls to a new folder that starts from the mirror in the folder `mirror`. Returns height and digest of the start.
   */
  async startAt(to: string, mirror: string): Promise<{ height: number; digest: string }> {
    const host = await startPlainFiles(mirror);
    try {
      await this.pull(to, { donors: [new URL(host.base)] });
    } finally {
      await host.close();
    }
    const { ledger } = JSON.parse(readFileSync(join(mirror, 'runes/v1/manifest.json'), 'utf8')) as Manifest;
    if (ledger === undefined) throw new Error('the mirror has no digest of its ledger');
    return ledger;
  }
}
