/**
 * Common configuration of the test tiers (`npm test`, browser, hosts, exhaustive). Each run has a folder and a seed, and prints its slowest
 * files at the end.
 */
import { env } from 'node:process';
import type { ViteUserConfig } from 'vitest/config';
import { BaseSequencer, type Reporter, type TestModule, type TestSpecification } from 'vitest/node';
import { Report } from './report.ts';

/** Setup of the test files of all tiers. */
export const SETUP = ['test/support/seed.ts', 'test/support/syncProcesses.ts'];

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
 * Runs the longest files first, so that all workers end at about the same time: those about the whole project, then by size. Files that are
 * not isolated run last: a worker keeps its loaded modules for the next file only if that file is not isolated either.
 */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ project, moduleId }: TestSpecification) =>
      2 * Number(!project.config.isolate) + Number(!moduleId.includes('/project/'));
    return (await super.sort(files)).sort((a, b) => placeOf(a) - placeOf(b));
  }
}

/** Returns the configuration of a tier. If the environment variable REPORT is a path, the run also writes a report there. */
export function tier(include: string, more: ViteUserConfig['test'] = {}): ViteUserConfig {
  const { globalSetup = [], ...rest } = more;
  return {
    test: {
      include: [include],
      globalSetup: ['test/support/globalSetup.ts', ...globalSetup],
      setupFiles: SETUP,
      reporters: ['default', new Slowest(), ...(env['REPORT'] ? [new Report(env['REPORT'])] : [])],
      testTimeout: 120_000,
      hookTimeout: 600_000,
      sequence: { sequencer: LongestFirst },
      ...rest,
    },
  };
}
