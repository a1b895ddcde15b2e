/** What the tiers of tests have in common: a folder and a seed for each run, and its slowest files at the end. */
import { env } from 'node:process';
import type { ViteUserConfig } from 'vitest/config';
import type { Reporter, TestModule } from 'vitest/node';

/** How many files are listed at the end. */
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

/** The configuration of a tier. With the variable REPORT, the run also writes a JSON report to that path. */
export function tier(include: string, more: ViteUserConfig['test'] = {}): ViteUserConfig {
  const { globalSetup = [], ...rest } = more;
  return {
    test: {
      include: [include],
      globalSetup: ['test/support/globalSetup.ts', ...globalSetup],
      setupFiles: ['test/support/seed.ts'],
      reporters: ['default', new Slowest(), ...(env['REPORT'] ? [['json', { outputFile: env['REPORT'] }] as ['json', object]] : [])],
      testTimeout: 120_000,
      hookTimeout: 120_000,
      ...rest,
    },
  };
}
