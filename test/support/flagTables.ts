/** Renders the flags of all commands for docs/commands.md, as `--help` prints them. */
import { helpOf } from '../../src/cli/help.ts';
import { BUILD_COMMAND } from '../../src/engine/buildCommand.ts';
import { EXPORT_COMMAND } from '../../src/export/exportCommand.ts';
import { KEYGEN_COMMAND } from '../../src/output/keygenCommand.ts';
import { PULL_COMMAND } from '../../src/pull/pullCommand.ts';
import { SERVE_COMMAND } from '../../src/serve/serveCommand.ts';
import { INIT_COMMAND } from '../../src/setup/initCommand.ts';
import { UPDATE_COMMAND } from '../../src/setup/updateCommand.ts';
import { VERIFY_COMMAND } from '../../src/verify/verifyCommand.ts';

const COMMANDS = [BUILD_COMMAND, PULL_COMMAND, INIT_COMMAND, UPDATE_COMMAND, SERVE_COMMAND, VERIFY_COMMAND, EXPORT_COMMAND, KEYGEN_COMMAND];
/** Width of a line in characters. */
const WIDTH = 116;

const FLAGS = /(<!-- flags: npm run docs -->\n)[\s\S]*?(<!-- end of flags -->)/;

/** Inserts the help of every command between the two marks of a document. Throws if the marks are missing. */
export function withFlags(document: string): string {
  if (!FLAGS.test(document)) throw new Error('the document has no marks for the flags');
  const texts = COMMANDS.map((command) => {
    const [usage, about, ...sections] = helpOf(command, WIDTH, (_, text) => text).split('\n\n');
    const flags = sections.filter((section) => !/^(?:Examples?|Exit codes)\n/.test(section));
    return [usage, about, ...flags].join('\n\n');
  });
  return document.replace(FLAGS, (_, before: string, after: string) => `${before}\`\`\`text\n${texts.join('\n\n\n')}\n\`\`\`\n${after}`);
}
