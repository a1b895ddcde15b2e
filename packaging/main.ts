#!/usr/bin/env node
/** The command `rune-mirror` of the package. Loads the bundle of one command, so that help is fast and the server never loads DuckDB. */
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { unknownCommand } from '../src/cli/nearestWord.ts';
import { EXIT, hasTooManyFiles, messageOf, RAISE_OPEN_FILES } from '../src/errors.ts';
import { VERSION } from '../src/version.ts';

const COMMANDS: Readonly<Record<string, string>> = {
  build: 'Turns rune activity records into a static JSON API.',
  serve: 'Serves a build on this machine.',
  pull: 'Fetches blocks from a Bitcoin Core node or another mirror.',
  verify: 'Checks every file of a build.',
  upload: 'Uploads a build to object storage with rclone.',
  init: 'Asks what a mirror needs, and writes rune-mirror.json.',
  update: 'Pulls, builds and uploads as rune-mirror.json says.',
  keygen: 'Makes a key that signs a mirror.',
  export: 'Writes a complete list of a mirror as CSV or Parquet.',
  sample: 'Writes sample data to try the program.',
};

const HELP_TEXT = `Usage: rune-mirror COMMAND [flags]

Turns Bitcoin rune activity into a static JSON API.

Commands
${Object.entries(COMMANDS)
  .map(([name, about]) => `  ${name.padEnd(6)}  ${about}`)
  .join('\n')}

Flags of all commands
  --help     Prints the flags of a command.
  --version  Prints the version of this program.

Example: rune-mirror sample && rune-mirror build && rune-mirror serve
`;

const UPLOAD_HELP = `Usage: rune-mirror upload [--replace] REMOTE [DIST] [CACHE]

Uploads a build with rclone, such as to r2:my-bucket.
`;

/** Runs hosting/upload.sh, and exits with the same code. */
function upload(args: readonly string[]): void {
  if (args[0] === '--help') return void process.stdout.write(UPLOAD_HELP);
  const script = fileURLToPath(new URL('./upload.sh', import.meta.url));
  const child = spawn('sh', [script, ...args], { stdio: 'inherit' });
  child.on('error', (error) => {
    process.stderr.write(`Error: upload needs a shell: ${error.message}\n`);
    process.exitCode = EXIT.buildFailed;
  });
  child.on('exit', (code) => {
    process.exitCode = code ?? EXIT.buildFailed;
  });
  // Ctrl-C also reaches the shell, which ends first.
  process.on('SIGINT', () => undefined).on('SIGTERM', () => child.kill('SIGTERM'));
}

/** Loads and runs a command. Reports its own errors; here, only those of files that cannot be opened to load it. */
function load(name: string): void {
  try {
    createRequire(import.meta.url)(`./${name}.cjs`);
  } catch (error) {
    if (!hasTooManyFiles(messageOf(error))) throw error;
    process.stderr.write(`Error: too many files are open: ${messageOf(error)}\n  ${RAISE_OPEN_FILES}\n`);
    process.exitCode = EXIT.buildFailed;
  }
}

function main(): void {
  const [name] = process.argv.splice(2, 1);
  if (name === '--version') process.stdout.write(`${VERSION}\n`);
  else if (name === '--help' || name === '-h') process.stdout.write(HELP_TEXT);
  else if (name === undefined) {
    process.stderr.write(HELP_TEXT);
    process.exitCode = EXIT.usage;
  } else if (name === 'upload') upload(process.argv.slice(2));
  // `readRows` is not in the list of commands: only pulls start it.
  else if (Object.hasOwn(COMMANDS, name) || name === 'readRows') load(name);
  else {
    process.stderr.write(unknownCommand(name, Object.keys(COMMANDS)));
    process.exitCode = EXIT.usage;
  }
}

main();
