/** The flags of the verify command. runVerify.ts does the work. */
import { type Command, flag, HELP, LOG } from '../cli/flags.ts';
import { MEMORY_LIMIT } from '../cli/memoryLimit.ts';
import { program } from '../program.ts';

export const VERIFY_COMMAND: Command = {
  call: program.callOf('verify'),
  about: 'Checks every file of a build and reports what is wrong.',
  flags: [
    flag('dir DIR', 'The output folder of a build.', { byDefault: 'dist' }),
    flag(
      'against MIRROR',
      'Then compares the build with another mirror: a folder, or https://host[/prefix]. If given twice or more without --dir, only compares these mirrors, and verifies no folder.',
      { repeatable: true },
    ),
    flag('key KEY', 'A public key that keygen printed. At least one of the given keys must have signed the build.', { repeatable: true }),
    MEMORY_LIMIT,
    LOG,
    HELP,
  ],
  examples: [
    { args: '', about: 'Verifies dist/.' },
    { args: '--against https://host', about: 'Also lists the blocks that differ from those of another mirror.' },
    { args: '--against https://one --against https://two', about: 'Says in which blocks two mirrors differ.' },
    { args: '--dir site --log json', about: 'Verifies site/, and reports as JSON lines.' },
  ],
  exits: ['done', 'usage', 'badInput', 'buildFailed', 'verificationFailed'],
};
