/** Tests the declarations of the client. They agree with the client's source, and a TypeScript program that uses them compiles and runs. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import ts from 'typescript-api';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { siteAssets } from '../../../src/site/assets.ts';
import { temporaryFolder, testBuild, writeFiles } from '../../support/build.ts';
import { SAMPLE_INPUT } from '../../support/cases.ts';
import { ROOT } from '../../support/cli.ts';
import { type LocalHost, startServer } from '../../support/server.ts';

it('client.d.ts declares what mirrorClient.ts exports', () => {
  const source = readFileSync(join(ROOT, 'src/serve/client/mirrorClient.ts'), 'utf8');
  const declared = String(new Map(siteAssets()).get('client.d.ts'));
  const { outputText, diagnostics } = ts.transpileDeclaration(source, {
    reportDiagnostics: true,
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, strict: true },
  });
  expect(diagnostics).toEqual([]);
  // The declarations contain types, which the source does not have. They repeat the classes and functions of the source, with their
  // documentation.
  const isType = (each: ts.Statement) => ts.isInterfaceDeclaration(each) || ts.isTypeAliasDeclaration(each);
  const isLink = (each: ts.Statement) => ts.isImportDeclaration(each) || ts.isExportDeclaration(each);
  const made = fileOf(outputText);
  expect(made.statements.filter(isLink).map((each) => each.getText().replace(/\{.*\}/s, '{}'))).toEqual([
    "import type {} from './client.d.ts';",
    "export type * from './client.d.ts';",
  ]);
  expect(made.statements.filter(isType)).toEqual([]);
  const plain = (file: ts.SourceFile, leftOut: (each: ts.Statement) => boolean) =>
    file.statements.filter((each) => !leftOut(each)).map((each) => PRINTER.printNode(ts.EmitHint.Unspecified, each, file));
  expect(plain(fileOf(declared), isType)).toEqual(plain(made, isLink));
});

it('client.d.ts has the types of answers that the schemas have', async () => {
  const declared = String(new Map(siteAssets()).get('client.d.ts'));
  const [generated = ''] = declared.split('// End of the generated types.');
  const names = [...generated.matchAll(/^export interface (\w+) \{/gm)].map(([, name]) => name);
  expect(names).toEqual(expect.arrayContaining(['Activity', 'Etching', 'HolderPage', 'OutputAnswer', 'MirrorManifest']));
  const work = temporaryFolder();
  const program = [
    `import type * as published from './client.d.ts';`,
    `import type * as source from '${ROOT}src/serve/client/client.d.ts';`,
    'type Same<A, B> = [A, B] extends [B, A] ? true : false;',
    ...names.map((name) => `export const same${name}: Same<published.${name}, source.${name}> = true;`),
    'export const other: Same<published.Activity, source.RuneActivity> = false;',
  ];
  const compilerOptions = {
    ...{ module: 'nodenext', target: 'es2022', lib: ['es2022', 'dom'], types: [], strict: true },
    ...{ skipLibCheck: true, allowImportingTsExtensions: true, noEmit: true },
  };
  writeFiles(work, {
    'client.d.ts': declared,
    'same.ts': program.join('\n'),
    'tsconfig.json': JSON.stringify({ compilerOptions, files: ['same.ts'] }),
  });
  const tsc = promisify(execFile)(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', work]);
  expect((await tsc.catch((error: { stdout: string }) => error)).stdout).toBe('');
});

const PRINTER = ts.createPrinter({ removeComments: true });
const fileOf = (text: string): ts.SourceFile => ts.createSourceFile('client.d.ts', text, ts.ScriptTarget.ES2022, true);

const PROGRAM = `
import { type Activity, type ActivityPage, type ActivityQuery, activity, Mirror, MirrorError, type MirrorManifest, type Operation } from 'rune-activity-mirror-client';

const base: string = (globalThis as unknown as { process: { argv: string[] } }).process.argv[2] ?? '';
const operation: Operation = 'send';
const query: ActivityQuery = { base, block: 2000007, operation, limit: undefined, signal: AbortSignal.timeout(60_000) };
const page: ActivityPage = await activity(query);
const first: Activity | undefined = page.results[0];
const height: number | undefined = first?.location.block_height;
const mirror = new Mirror(new URL(base), { fetch, freshMs: 1000 });
const manifest: MirrorManifest = await mirror.manifest();
const { status, body } = await mirror.get('/runes/v1/blocks/2000007/activity?limit=1');
let refusal = '';
try {
  await mirror.activity({ transaction: 'abc' });
} catch (error) {
  if (error instanceof MirrorError) refusal = \`\${error.statusCode} \${error.error}: \${error.message}\`;
}
console.log(JSON.stringify({ total: page.total, height, dialect: manifest.dialect, status, length: body.length, refusal }));
`;

describe.each([
  ['bundler', 'a browser', { module: 'esnext', lib: ['es2022', 'dom'], types: [] }],
  ['nodenext', 'Node', { module: 'nodenext', lib: ['es2022'], types: ['node'], typeRoots: [join(ROOT, 'node_modules/@types')] }],
])('a program, with moduleResolution %s and the types of %s', (moduleResolution, _, options) => {
  const work = temporaryFolder();
  let host: LocalHost;
  const compile = async (file: string): Promise<string> => {
    const config = {
      compilerOptions: {
        ...options,
        moduleResolution,
        target: 'es2022',
        strict: true,
        exactOptionalPropertyTypes: true,
        skipLibCheck: false,
        skipDefaultLibCheck: true,
        outDir: 'made',
      },
      files: [file],
    };
    writeFiles(work, { 'tsconfig.json': JSON.stringify(config) });
    return (await promisify(execFile)(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', work], { cwd: work })).stdout;
  };
  beforeAll(async () => {
    const installed = join(work, 'node_modules/rune-activity-mirror-client');
    await testBuild(installed, { inputs: [SAMPLE_INPUT] });
    const exported = { types: './client.d.ts', default: './client.js' };
    writeFiles(installed, {
      'package.json': JSON.stringify({ name: 'rune-activity-mirror-client', type: 'module', exports: exported }),
    });
    writeFiles(work, { 'package.json': '{"type":"module"}', 'program.ts': PROGRAM });
    host = await startServer(installed);
  });
  afterAll(() => host.close());

  it('compiles and runs in Node', async () => {
    expect(await compile('program.ts')).toBe('');
    const { stdout } = await promisify(execFile)(process.execPath, [join(work, 'made/program.js'), `http://127.0.0.1:${host.port}`]);
    const { body } = await host.send('GET', '/runes/v1/blocks/2000007/activity?limit=1');
    expect(JSON.parse(stdout)).toEqual({
      total: 244,
      height: 2000007,
      dialect: 'contract',
      status: 200,
      length: body.length,
      refusal: '400 Bad Request: params/tx_id must match pattern "^[a-fA-F0-9]{64}$"',
    });
  });

  it('does not compile if it uses the client wrongly', async () => {
    const uses = [
      `activity({ base: '', block: 1, limit: '5' })`,
      `activity({ base: '', block: 1, operation: 'steal' })`,
      `activity({ block: 1 })`,
      `activity({ base: '', block: 1 }).then(({ results }) => results.map(({ amount }) => amount.length))`,
    ];
    writeFiles(work, { 'wrong.ts': [`import { activity } from 'rune-activity-mirror-client';`, ...uses].join('\n') });
    const { stdout } = (await compile('wrong.ts').catch((error: unknown) => error)) as { stdout: string };
    const lines = [...stdout.matchAll(/^wrong\.ts\(([0-9]+),/gm)].map(([, line]) => Number(line));
    expect([stdout, lines]).toEqual([stdout, [2, 3, 4, 5]]);
  });
});
