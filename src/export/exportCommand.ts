/** Flags of the export command. runExport.ts runs the command. */
import { type Command, flag, HELP, LOG } from '../cli/flags.ts';
import { MEMORY_LIMIT } from '../cli/memoryLimit.ts';
import { program } from '../program.ts';

export const EXPORT_COMMAND: Command = {
  call: program.callOf('export'),
  about:
    'Writes a complete list of a mirror into a CSV file: all runes, the holders or the activity of a rune, or the balances, the activity or the unspent outputs of an address.',
  positionals: { name: 'LIST [RUNE|ADDRESS]', least: 1 },
  flags: [
    flag('dir DIR', 'The output folder of a build.', { byDefault: 'dist' }),
    flag('mirror URL', 'A mirror at https://host[/prefix], instead of a folder.'),
    flag('height N', 'The holders after this block. (default: after the last block of the list)'),
    flag('out FILE', 'New CSV file. (default: list and subject, in this folder)'),
    MEMORY_LIMIT,
    LOG,
    HELP,
  ],
  examples: [
    { args: 'holders DOG•GO•TO•THE•MOON', about: 'Writes holders-DOG-GO-TO-THE-MOON.csv from dist/.' },
    { args: 'runes', about: 'All runes with their terms and their supply.' },
    { args: 'holders 840000:3 --height 840100', about: 'The holders after block 840100.' },
    { args: 'outputs bc1q… --mirror https://host', about: 'The unspent outputs of an address, from another mirror.' },
  ],
  exits: ['done', 'usage', 'badInput', 'buildFailed', 'interrupted'],
};
