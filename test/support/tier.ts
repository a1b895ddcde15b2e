/**
 * Common configuration of the test tiers (`npm test`, browser, hosts, exhaustive). Each run has a folder and a seed,
 * and prints its slowest files at the end.
 */
import { env } from 'node:process';
import type { ViteUserConfig } from 'vitest/config';
import { BaseSequencer, type Reporter, type TestModule, type TestSpecification } from 'vitest/node';
import { Report } from './report.ts';

/** Number of files to list at the end. */
const SLOWEST = 10;

/** Prints the slowest test files of a run, with their imports, hooks and tests in seconds. */
class Slowest implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const files = modules.map((module) => {
      const { prepareDuration, setupDuration, collectDuration, duration } = module.diagnostic();
      return { name: module.relativeModuleId, seconds: (prepareDuration + setupDuration + collectDuration + duration) / 1000 };
    });
    files.sort((a, b) => b.seconds - a.seconds);
    const lines = files.slice(0, SLOWEST).map(({ name, seconds }) => `${seconds.toFixed(1).padStart(8)} s  ${name}`);
    console.log(`\nSlowest of ${files.length} files:\n${lines.join('\n')}\n`);
  }
}

/**
 * Runs the slowest files of a tier first, so that all workers end at about the same time. The list is fixed, because a
 * fresh checkout has no times of earlier runs, and Vitest then sorts by file size, which says little about the time.
 * The list that a run prints at its end shows when the fixed list needs a change.
 */
class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = SLOW.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return at === -1 ? SLOW.length : at;
    };
    // Files that are not isolated run last, one after another. A worker keeps its loaded modules for the next file only
    // if that file has the same project and is not isolated.
    const isShared = ({ project }: TestSpecification) => Number(!project.config.isolate);
    return (await super.sort(files)).sort((a, b) => isShared(a) - isShared(b) || rank(a) - rank(b));
  }
}

/**
 * Files with dozens of builds or processes each, slowest first. They are too slow for `npm test`, so `npm run
 * test:exhaustive` runs them.
 */
export const LONG: readonly string[] = [
  'engine/incremental',
  'serve/changes',
  'project/tinyLimits',
  'pull/startFrom',
  'input/inputForms',
  'pull/nodePull',
  'output/output',
  'setup/settings',
  'pull/pullMirror',
  'pull/pull',
  'pull/blockServer',
  'engine/spent',
  'pull/coreNode',
  'input/sample',
  'engine/ledgerDigest',
  'input/badInput',
  'lists/activityLists',
  'engine/blockRange',
  'lists/balances',
  'output/stats',
  'cli/memoryLimit',
  'verify/senders',
  'input/scattered',
  'lists/runeNames',
  'output/sources',
  'verify/compareMirrors',
  'engine/locks',
  'lists/noAddress',
].map((name) => `test/${name}.test.ts`);

/** Files with random cases that are too slow for `npm test`. The exhaustive tier runs them in its project `more`. */
export const MORE: readonly string[] = ['engine/ioErrors', 'input/leftOut', 'serve/pending', 'serve/proofs'].map(
  (name) => `test/${name}.test.ts`,
);

/** Slow files of all tiers. The files of one tier are in descending order of their times. */
const SLOW: readonly string[] = [
  ...['cli/cli', 'serve/client', 'verify/verify', 'project/npm', 'site/openapi'],
  ...LONG.map((path) => path.slice('test/'.length, -'.test.ts'.length)),
  ...[
    'outputHistories',
    'nodeChains',
    'rowsOfMirrors',
    'shellBlocks',
    'rehearsal',
    'startRows',
    'startedBuilds',
    'hostileSources',
    'pullRows',
    'histories',
    'package',
    'publishedRows',
    'kill',
    'archive',
    'verify',
    'client',
    'pullDatabase',
    'replaced',
    'fullDisk',
    'openFiles',
    'pullKill',
    'startBuild',
    'outputStates',
    'etchingHistories',
    'exportHeights',
    'balanceHistories',
    'etchingBuilds',
    'interrupt',
    'pullEtchings',
    'inputForms',
    'rowsBuilds',
    'nodeTip',
    'activityHistories',
    'operator',
    'terminal',
    'activityArchive',
    'archiveBuild',
    'balanceArchive',
    'nodeKill',
    'wideBlocks',
    'nodeFollow',
    'longBalances',
    'longOutputs',
    'archiveFaults',
    'damagedState',
  ].map((name) => `exhaustive/${name}`),
  ...['workflow', 'upload', 'cases', 'cloudflare', 'nginx', 'caddy', 'netlify', 'docker', 'runtimes'].map((name) => `hosts/${name}`),
  ...['runes', 'lists', 'look', 'docs', 'sizes', 'lookUp', 'follow'].map((name) => `browser/${name}`),
];

/**
 * Returns the configuration of a tier. If the environment variable REPORT is a path, the run also writes a report there.
 */
export function tier(include: string, more: ViteUserConfig['test'] = {}): ViteUserConfig {
  const { globalSetup = [], ...rest } = more;
  return {
    test: {
      include: [include],
      globalSetup: ['test/support/globalSetup.ts', ...globalSetup],
      setupFiles: ['test/support/seed.ts'],
      reporters: ['default', new Slowest(), ...(env['REPORT'] ? [new Report(env['REPORT'])] : [])],
      testTimeout: 120_000,
      hookTimeout: 600_000,
      sequence: { sequencer: SlowestFirst },
      ...rest,
    },
  };
}
