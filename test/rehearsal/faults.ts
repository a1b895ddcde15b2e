/**
 * Shows that a rehearsal detects faults that would otherwise appear only on mainnet. For each fault, changes one line
 * of a copy of the program, and runs a short rehearsal with tiny limits, which must fail. `npx tsx
 * test/rehearsal/faults.ts [part of a name]`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { EXIT } from '../../src/errors.ts';
import { ROOT } from '../support/cli.ts';

interface Fault {
  readonly name: string;
  readonly file: string;
  /** Text that the fault replaces by `to`. It occurs exactly once in the file. */
  readonly from: string;
  readonly to: string;
  /**
   * Number of builds in the rehearsal, 1 by default. Only a second build joins levels of lists (src/format/levels.ts).
   */
  readonly heights?: number;
}

export const FAULTS: readonly Fault[] = [
  {
    name: 'a script that is a view of a page',
    file: 'src/unspent/outputBytes.ts',
    from: 'const script = copyOf(reader.take(reader.integer()));',
    to: 'const script = reader.take(reader.integer()) as unknown as Uint8Array;',
  },
  {
    name: 'changed spent outputs that a build overlooks',
    file: 'src/engine/writeChangedPages.ts',
    from: 'row?.digest !== digest || row.known_spent !== row.spent_digest',
    to: 'row?.digest !== digest',
  },
  {
    name: 'a level that readers leave out',
    file: 'src/format/documents.ts',
    from: '    levels.map(async (level) => {',
    to: '    levels.slice(1).map(async (level) => {',
  },
  {
    name: 'a level that a build leaves out when it joins levels',
    file: 'src/engine/archive/makeLevels.ts',
    from: 'before.filter((level) => reused.some(({ first }) => first === level.first));',
    to: 'before.filter((level) => reused.some(({ first }) => first === level.first)).slice(0, Math.max(1, reused.length - 1));',
    heights: 2,
  },
];

/** Returns the changed text of the fault's file. Throws if the program no longer has the line. */
export function changed({ name, file, from, to }: Fault): string {
  const [before, after, ...more] = readFileSync(join(ROOT, file), 'utf8').split(from);
  if (before === undefined || after === undefined || more.length > 0) throw new Error(`${file} has no line for the fault "${name}"`);
  return before + to + after;
}

/** Flags of the rehearsals. In a chain of 300 blocks, enough transactions spend several old outputs together. */
const REHEARSAL = ['--blocks', '300', '--tiny', '--follow', '0', '--requests', '200'];

/** Runs a rehearsal with a copy of the program. Returns its exit code and the end of its output. */
async function rehearse(fault: Fault | undefined): Promise<{ readonly code: unknown; readonly said: string }> {
  const work = mkdtempSync(join(tmpdir(), 'mirror-fault-'));
  try {
    for (const part of ['bench', 'package.json', 'scripts', 'src', 'test/rehearsal', 'test/support'])
      cpSync(join(ROOT, part), join(work, 'copy', part), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(work, 'copy/node_modules'));
    if (fault !== undefined) writeFileSync(join(work, 'copy', fault.file), changed(fault));
    const args = [
      join(work, 'copy/scripts/run.cjs'),
      'rehearsal',
      '--dir',
      join(work, 'run'),
      '--heights',
      String(fault?.heights ?? 1),
      ...REHEARSAL,
    ];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (text: Buffer) => {
        said = (said + text.toString()).slice(-3000);
      });
    }
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, said };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const wanted = process.argv[2] ?? '';
  for (const fault of [undefined, ...FAULTS].filter((one) => (one?.name ?? 'no fault').includes(wanted))) {
    const { code, said } = await rehearse(fault);
    const isExpected = code === (fault === undefined ? EXIT.done : EXIT.verificationFailed);
    process.stdout.write(`${isExpected ? 'as expected' : 'UNEXPECTED'}: ${fault?.name ?? 'no fault'}: exit code ${code}\n${said}\n`);
    if (!isExpected) process.exitCode = 1;
  }
}
