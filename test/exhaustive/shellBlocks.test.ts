/**
 * Runs every shell block of the documents in a fresh copy of the project. A list names the blocks that cannot run in a
 * test, with reasons. The test checks the syntax and flags of these blocks.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fg from 'fast-glob';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BENCH_COMMAND } from '../../bench/bench.ts';
import { BENCH_HOSTS_COMMAND } from '../../bench/hosts.ts';
import { type Command, Flags } from '../../src/cli/flags.ts';
import { BUILD_COMMAND } from '../../src/engine/buildCommand.ts';
import { EXPORT_COMMAND } from '../../src/export/exportCommand.ts';
import { SAMPLE_COMMAND } from '../../src/input/sample/sampleCommand.ts';
import { KEYGEN_COMMAND } from '../../src/output/keygenCommand.ts';
import { PULL_COMMAND } from '../../src/pull/pullCommand.ts';
import { SERVE_COMMAND } from '../../src/serve/serveCommand.ts';
import { INIT_COMMAND } from '../../src/setup/initCommand.ts';
import { UPDATE_COMMAND } from '../../src/setup/updateCommand.ts';
import { VERIFY_COMMAND } from '../../src/verify/verifyCommand.ts';
import { REHEARSAL_COMMAND } from '../rehearsal/rehearsal.ts';
import { ROOT } from '../support/cli.ts';
import { codeBlocksOf, PAGES, readPage, withoutBlocks } from '../support/pages.ts';
import { ProjectCopy } from '../support/shell.ts';

/** A block that the test does not run. */
interface Exemption {
  readonly page: string;
  /** Text in the block that cannot run in a test. */
  readonly needs: string;
  readonly reason: string;
  /** The test that runs the block instead: a file, and a text in this file. */
  readonly ranBy?: readonly [path: string, text: string];
}

const EXEMPTIONS: readonly Exemption[] = [
  {
    page: 'README.md',
    needs: 'postgres://user@host/runes',
    reason: 'none of these hosts exists; a test runs each line with a node, a database and a mirror of its own',
    ranBy: ['test/exhaustive/operator.test.ts', 'README.md'],
  },
  {
    page: 'README.md',
    needs: '--input input/pulled --dialect hiro',
    reason: 'it builds what the block before pulled',
    ranBy: ['test/exhaustive/operator.test.ts', 'README.md'],
  },
  {
    page: 'README.md',
    needs: 'npm run lint && npm run typecheck\n',
    reason: 'the gate runs both on the same files; the nine programs of types take a minute of CPU time',
    ranBy: ['.ci/run', 'both "npm run typecheck:rooms" "npx tsc"'],
  },
  {
    page: 'docs/quickstart.md',
    needs: '--blocks -1000..',
    reason: 'the host does not exist',
    ranBy: ['test/exhaustive/operator.test.ts', 'docs/quickstart.md'],
  },
  {
    page: 'docs/quickstart.md',
    needs: 'build -- --input input/pulled',
    reason: 'it builds what the block before pulled',
    ranBy: ['test/exhaustive/operator.test.ts', 'docs/quickstart.md'],
  },
  {
    page: 'docs/node.md',
    needs: '--from core:http://127.0.0.1:8332\n',
    reason: 'it needs a node on its default port; tests pull from one on a free port',
    ranBy: ['test/exhaustive/pull/nodePull.test.ts', 'chains of the fixtures'],
  },
  {
    page: 'docs/node.md',
    needs: '--block-source https://esplora.example.org/api',
    reason: 'it needs a node on its default port, and the host does not exist',
    ranBy: ['test/exhaustive/pull/blockServer.test.ts', 'blockSource'],
  },
  {
    page: 'docs/start-from-a-mirror.md',
    needs: '--block-source https://esplora.example.org/api',
    reason: 'it needs a node on its default port, and the host does not exist',
    ranBy: ['test/exhaustive/pull/blockServer.test.ts', 'verified'],
  },
  {
    page: 'docs/node.md',
    needs: 'build -- --input input/pulled',
    reason: 'it builds what the block before pulled',
    ranBy: ['test/support/nodePulls.ts', 'testBuild'],
  },
  { page: 'docs/node.md', needs: '--follow -- --dialect hiro', reason: 'it needs a node, and does not end' },
  { page: 'docs/node.md', needs: 'sudo systemctl', reason: 'it installs a service on this machine' },
  {
    page: 'bench/peers/README.md',
    needs: 'npm ci --prefix bench/peers',
    reason: 'it installs the peers and measures for minutes',
  },
  {
    page: 'docs/start-from-a-mirror.md',
    needs: '--start-from https://mirror.example.org',
    reason: 'none of these hosts exists; tests start at mirrors of their own',
    ranBy: ['test/exhaustive/pull/startFrom.test.ts', 'a start'],
  },
  {
    page: 'docs/start-from-a-mirror.md',
    needs: 'build -- --input input/pulled',
    reason: 'it builds what the block before pulled',
    ranBy: ['test/exhaustive/pull/startFrom.test.ts', 'testBuild'],
  },
  {
    page: 'docs/start-from-a-mirror.md',
    needs: '--against https://all-blocks.example.org',
    reason: 'the host does not exist; tests compare mirrors of their own',
    ranBy: ['test/exhaustive/pull/startFrom.test.ts', 'compareMirrors'],
  },
  {
    page: 'packaging/mirror/README.md',
    needs: 'npx rune-mirror sample',
    reason: 'it needs the package, and a server does not end',
    ranBy: ['test/exhaustive/package.test.ts', 'packaging/mirror/README.md'],
  },
  {
    page: 'packaging/mirror/README.md',
    needs: 'npx rune-mirror pull',
    reason: 'it needs the package, and the host does not exist',
    ranBy: ['test/exhaustive/package.test.ts', 'packaging/mirror/README.md'],
  },
  { page: 'docs/api.md', needs: 'https://host/openapi.json', reason: 'the host does not exist, and the generators are downloads' },
  {
    page: 'docs/ci.md',
    needs: 'cd /srv/rune-activity-mirror',
    reason: 'it is a file for cron, and needs a bucket',
    ranBy: ['test/hosts/workflow.test.ts', 'the script for cron in docs/ci.md'],
  },
  {
    page: 'hosting/files-only/README.md',
    needs: 'npx serve',
    reason: 'a server that does not end',
    ranBy: ['test/hosts/filesOnly.test.ts', 'serve'],
  },
  {
    page: 'hosting/object-storage.md',
    needs: 'r2:my-bucket',
    reason: 'it needs rclone and a bucket',
    ranBy: ['test/hosts/upload.test.ts', 'hosting/upload.sh'],
  },
  { page: 'hosting/own-server/README.md', needs: 'sudo systemctl', reason: 'it installs a service on this machine' },
  {
    page: 'hosting/own-server/README.md',
    needs: 'docker build',
    reason: 'it needs Docker; a test builds the image with buildah',
    ranBy: ['test/hosts/docker.test.ts', 'hosting/own-server/Dockerfile'],
  },
  {
    page: 'hosting/own-server/README.md',
    needs: 'docker compose',
    reason: 'it needs Docker and the chain; a test checks its commands',
    ranBy: ['test/serve/ownServer.test.ts', 'compose.yaml'],
  },
  {
    page: 'hosting/own-server/README.md',
    needs: 'deno run',
    reason: 'it needs Deno and Bun, which only the tests of hosts install; they run these very lines',
    ranBy: ['test/hosts/runtimeHost.ts', 'hosting/own-server/README.md'],
  },
];

/** Labels of blocks in other languages than sh. */
const OTHER_LABELS = ['crontab', 'csv', 'html', 'http', 'js', 'json', 'mermaid', 'python', 'sql', 'text', 'toml', 'ts', 'yaml'];

/** The flag tables, by npm script. */
const COMMANDS: Readonly<Record<string, Command>> = {
  bench: BENCH_COMMAND,
  'bench:hosts': BENCH_HOSTS_COMMAND,
  build: BUILD_COMMAND,
  init: INIT_COMMAND,
  keygen: KEYGEN_COMMAND,
  export: EXPORT_COMMAND,
  sample: SAMPLE_COMMAND,
  pull: PULL_COMMAND,
  rehearsal: REHEARSAL_COMMAND,
  serve: SERVE_COMMAND,
  start: SERVE_COMMAND,
  update: UPDATE_COMMAND,
  verify: VERIFY_COMMAND,
};

const BLOCKS = PAGES.flatMap(codeBlocksOf);
const SHELL = BLOCKS.filter(({ label }) => label === 'sh');
const exemptionsOf = ({ page, text }: { readonly page: string; readonly text: string }) =>
  EXEMPTIONS.filter((one) => one.page === page && text.includes(one.needs));

/** Matches a line that begins with a program that the documents call in a shell. */
const BEGINS_AS_SHELL =
  /^(?:\$ |(?:sudo |exec )?(?:apt-get|bun|caddy|cat|cd|cp|curl|deno|docker|duckdb|git|hosting\/upload\.sh|mkdir|nginx|node|npm|npx|psql|rclone|rsync|rm|systemctl|wget|wrangler)(?: |$))/;

/** Splits a line into words as a shell does without substitutions, up to a comment or the next command. */
function wordsOf(line: string): string[] {
  const words: string[] = [];
  for (const [word] of line.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)) {
    if (/^(?:#|[|&;]|[0-9]?>)/.test(word)) break;
    words.push(word.replace(/'([^']*)'|"([^"]*)"/g, '$1$2'));
  }
  return words;
}

/** Returns the calls of npm scripts in a text, as script and arguments. */
const callsIn = (text: string): [script: string, args: string[]][] =>
  [...text.replace(/\\\n/g, ' ').matchAll(/\bnpm (?:run (?:-s )?([\w:]+)|(start))(?: -- ([^\n`]*))?/g)].map(
    ([, script, start, args = '']) => [script ?? start ?? '', wordsOf(args)],
  );

describe('the blocks of documents', () => {
  it('are found', () => {
    expect(SHELL.length).toBeGreaterThan(15);
  });

  it('have a label', () => {
    const unknown = BLOCKS.filter(({ label }) => label !== 'sh' && !OTHER_LABELS.includes(label));
    expect(unknown.map(({ page, label, text }) => [page, label, text.slice(0, 60)])).toEqual([]);
  });

  it('have the label sh if they are shell, and have fences', () => {
    // Skips mermaid, because a node of a diagram may have the name of a command, such as duckdb.
    const labelled = BLOCKS.filter(({ label }) => label !== 'sh' && label !== 'mermaid').flatMap(({ page, label, text }) =>
      text.split('\n').map((line) => [page, label, line] as const),
    );
    const indented = PAGES.flatMap((page) =>
      withoutBlocks(page)
        .split('\n')
        .filter((line) => /^ {4}/.test(line))
        .map((line) => [page, 'indented', line] as const),
    );
    expect([...labelled, ...indented].filter(([, , line]) => BEGINS_AS_SHELL.test(line.trim()))).toEqual([]);
  });

  it.each(SHELL)('have valid shell syntax: $page $text', ({ text }) => {
    expect(spawnSync('bash', ['-n'], { input: text, encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
  });
});

describe('the flags of npm scripts', () => {
  const scripts = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> }).scripts;
  const TEST_FILES = fg.sync('test/**/*.test.ts', { cwd: ROOT });

  it.each(PAGES.filter((page) => callsIn(readPage(page)).length > 0))('in %s exist in the commands', (page) => {
    for (const [script, args] of callsIn(readPage(page))) {
      expect(Object.keys(scripts)).toContain(script);
      const command = COMMANDS[script];
      // Vitest accepts parts of file names as arguments.
      if (script.startsWith('test')) expect(args.filter((arg) => !TEST_FILES.some((file) => file.includes(arg)))).toEqual([]);
      else if (command === undefined) expect([script, args]).toEqual([script, []]);
      // Checks flags that prose mentions alone, without the other arguments of the command.
      else if (args.length > 0) Flags.parse({ ...command, positionals: { name: 'anything', least: 0 } }, args);
    }
  });
});

describe('exemptions', () => {
  it.each(EXEMPTIONS)('of $page match one block that needs the exemption: $needs', ({ page, needs, ranBy }) => {
    expect(SHELL.filter((block) => block.page === page && block.text.includes(needs))).toHaveLength(1);
    if (ranBy !== undefined) expect(readFileSync(join(ROOT, ranBy[0]), 'utf8')).toContain(ranBy[1]);
  });
});

const pagesToRun = [...new Set(SHELL.filter((block) => exemptionsOf(block).length === 0).map(({ page }) => page))];

describe.each(pagesToRun)('%s', (page) => {
  let project: ProjectCopy;
  beforeAll(async () => {
    project = await ProjectCopy.make();
  });
  afterAll(() => project.close());

  it.each(SHELL.filter((block) => block.page === page && exemptionsOf(block).length === 0))('runs: $text', async ({ text }) => {
    const { code, output } = await project.run(text);
    expect(code, output).toBe(0);
  });
});
