/** Writes what the gate needs to know of a run of tests: how many passed, failed and were skipped, and why they failed. */
import { writeFileSync } from 'node:fs';
import type { Reporter, SerializedError, TestModule, TestSuite } from 'vitest/node';

/** Characters of a failure's message that the report keeps. */
const MESSAGE_LENGTH = 2_000;

/**
 * Writes a file with a line `PASSED FAILED SKIPPED`, and then each failure with its message. A failed hook counts as one failure, because
 * the tests that it prevents are counted as skipped. Vitest's own JSON reporter leaves out the messages of hooks.
 */
export class Report implements Reporter {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const failures: string[] = [];
    const tell = (name: string, errors: readonly SerializedError[]) => {
      if (errors.length === 0) return;
      const message = errors.map(({ message, stack }) => `${message}\n${stack ?? ''}`).join('\n');
      failures.push(`FAILED: ${name}\n${message.slice(0, MESSAGE_LENGTH)}\n`);
    };
    const states = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    for (const module of modules) {
      const nameOf = ({ fullName }: TestSuite) => `${module.relativeModuleId}: hooks of ${fullName}`;
      tell(`${module.relativeModuleId}: the file`, module.errors());
      for (const suite of module.children.allSuites()) tell(nameOf(suite), suite.errors());
      for (const test of module.children.allTests()) {
        const { state, errors = [] } = test.result();
        states[state] += 1;
        const name = `${module.relativeModuleId}: ${test.fullName}`;
        if (state === 'failed') tell(name, errors);
        // Vitest loses the result of a test when it cannot read the error, for example because of its stack.
        if (state === 'pending') tell(name, [{ message: 'The test has no result.' }]);
      }
    }
    tell('an error outside of tests', unhandled);
    writeFileSync(this.#path, `${states.passed} ${failures.length} ${states.skipped}\n${failures.join('')}`);
  }
}
