/**
 * The verify command: its flags, and what it says.
 */
import { type Command, type Flags, HELP } from '../cli/flags.ts';
import type { Log } from '../cli/log.ts';
import { Progress } from '../cli/progress.ts';
import { verify } from './verify.ts';

export const VERIFY_COMMAND: Command = {
  call: 'npm run verify --',
  about: 'Reads a whole output again, and says what in it is not as it should be.',
  flags: [
    { name: 'dir', value: 'DIR', byDefault: 'dist', about: 'The output folder of a build.' },
    { name: 'log', value: 'FORMAT', byDefault: 'text', about: 'text, or json for a JSON object a line.' },
    HELP,
  ],
};

/** Verifies as the flags say. Rejects with a VerificationError when the output is not as it should be. */
export async function runVerify(flags: Flags, log: Log): Promise<void> {
  const dir = flags.one('dir') ?? 'dist';
  const format = flags.choice('log', ['text', 'json']);
  const start = performance.now();
  const { manifest, files } = await verify(dir, new Progress(log, format === 'text' && process.stderr.isTTY));
  const seconds = Number(((performance.now() - start) / 1000).toFixed(1));
  log.info(
    'verified',
    `${dir} is whole: ${files.toLocaleString('en-US')} files of ${manifest.blocks.toLocaleString('en-US')} blocks, digest ${manifest.digest}, in ${seconds} s.`,
    { files, blocks: manifest.blocks, records: manifest.records, digest: manifest.digest, seconds },
  );
}
