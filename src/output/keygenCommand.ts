/** The keygen command: makes a key that signs mirrors. */
import { type Command, type Flags, flag, HELP, LOG } from '../cli/flags.ts';
import type { Log } from '../cli/log.ts';
import { createDurably } from '../disk/replaceFile.ts';
import { BuildError, codeOf, InputError, messageOf, UsageError } from '../errors.ts';
import { isKeyName } from '../format/signedNote.ts';
import { program } from '../program.ts';
import { makeKey } from './signingKeys.ts';

export const KEYGEN_COMMAND: Command = {
  call: program.callOf('keygen'),
  about: 'Makes a key that signs a mirror: writes the private key into a file, and prints the public key for clients.',
  flags: [
    flag('name NAME', 'Name of the key, such as the host of the mirror. No spaces and no plus sign.'),
    flag('out FILE', 'New file for the private key. Only its owner may read it.'),
    LOG,
    HELP,
  ],
  examples: [{ args: '--name mirror.example.org --out ../mirror.key', about: 'Makes a key outside of the project.' }],
  exits: ['done', 'usage', 'badInput', 'buildFailed'],
};

/** Runs the command. Rejects with an InputError if the file exists, because nothing can restore a private key. */
export async function runKeygen(flags: Flags, log: Log): Promise<void> {
  const [name, out] = [flags.one('name'), flags.one('out')];
  if (name === undefined || out === undefined) throw new UsageError(`--${name === undefined ? 'name' : 'out'} must be given`);
  if (!isKeyName(name)) throw new UsageError(`--name ${JSON.stringify(name)} must have no spaces, no plus sign and at most 200 characters`);
  const { privateText, publicText } = makeKey(name);
  try {
    createDurably(out, `${privateText}\n`, 0o600);
  } catch (error) {
    if (codeOf(error) === 'EEXIST')
      throw new InputError(`${out} exists, and keygen never replaces a file`, ['Choose another file with --out.']);
    throw new BuildError(`the key cannot be written: ${messageOf(error)}`, ['Choose another file with --out.']);
  }
  log.info('made', publicText, { key: publicText, path: out });
}
