/**
 * Makes the packages of the program and of the client module, in `packages/` or in the folder of the first argument. An installed program
 * needs only DuckDB, and does not have to compile TypeScript or bundle scripts.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { settingsSchema } from '../src/setup/settingsSchema.ts';
import { siteAssets } from '../src/site/assets.ts';
import { bundleProgram, NATIVE } from './bundleProgram.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const OUT = resolve(process.argv[2] ?? join(ROOT, 'packages'));
const PROJECT = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly engines: object;
  readonly dependencies: Readonly<Record<string, string>>;
};
const { name, version, description, license, engines } = PROJECT;

/** Returns the licences of all packages that have a file among `sources`. Throws for a package without a licence. */
function licencesOf(sources: readonly string[]): string {
  const folders = new Set(sources.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []));
  const texts = [...folders].sort().map((folder) => {
    const file = readdirSync(join(ROOT, folder)).find((entry) => /^licen[cs]e/i.test(entry));
    const one = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as Partial<typeof PROJECT>;
    if (file === undefined && one.license === undefined) throw new Error(`${folder} has no licence`);
    const text = file === undefined ? `Licence: ${one.license}` : readFileSync(join(ROOT, folder, file), 'utf8').trim();
    return `${one.name} ${one.version}\n\n${text}\n`;
  });
  return `The programs of this package contain the following packages.\n\n${texts.join(`\n${'-'.repeat(80)}\n\n`)}`;
}

function write(folder: string, files: Readonly<Record<string, string | Buffer>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
}

const jsonText = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;
const CLIENT_FILES = ['client.js', 'lists.js', 'proofs.js', 'pending.js', 'client.d.ts'];
const CLIENT_EXPORT = { types: './client.d.ts', default: './client.js' };

async function makeProgram(folder: string, assets: Readonly<Record<string, Buffer>>): Promise<void> {
  const sources = await bundleProgram(folder, join(ROOT, 'packaging/program.ts'));
  const dependencies = Object.fromEntries(NATIVE.map((one) => [one, PROJECT.dependencies[one]]));
  const upload = readFileSync(join(ROOT, 'hosting/upload.sh'), 'utf8');
  write(folder, {
    'package.json': jsonText({
      name,
      version,
      description,
      license,
      type: 'module',
      bin: { 'rune-mirror': 'rune-mirror.cjs' },
      exports: { './client': CLIENT_EXPORT },
      engines,
      dependencies,
    }),
    'upload.sh': upload.replaceAll('hosting/upload.sh', 'rune-mirror upload').replaceAll('npm run build', 'rune-mirror build'),
    'rune-mirror.schema.json': settingsSchema(),
    'THIRD-PARTY-LICENSES.txt': licencesOf(sources),
    ...Object.fromEntries(Object.entries(assets).map(([path, content]) => [`assets/${path}`, content])),
  });
  for (const path of CLIENT_FILES) cpSync(join(folder, 'assets', path), join(folder, path));
  cpSync(join(ROOT, 'sample'), join(folder, 'sample'), { recursive: true });
  chmodSync(join(folder, 'rune-mirror.cjs'), 0o755);
}

function makeClient(folder: string, assets: Readonly<Record<string, Buffer>>): void {
  const about = 'Reads rune activity from any static mirror of rune-activity-mirror';
  const files = Object.fromEntries(CLIENT_FILES.map((path) => [path, assets[path] ?? '']));
  if (Object.values(files).includes('')) throw new Error('the client module is missing');
  write(folder, {
    'package.json': jsonText({
      name: `${name}-client`,
      version,
      description: about,
      license,
      type: 'module',
      engines,
      exports: { '.': CLIENT_EXPORT },
      // For TypeScript's resolution "node10", which does not read `exports`.
      types: CLIENT_EXPORT.types,
      sideEffects: false,
    }),
    ...files,
  });
}

async function main(): Promise<void> {
  rmSync(OUT, { recursive: true, force: true });
  const assets = Object.fromEntries(siteAssets());
  const folders = { mirror: join(OUT, 'mirror'), client: join(OUT, 'client') };
  await makeProgram(folders.mirror, assets);
  makeClient(folders.client, assets);
  for (const [part, folder] of Object.entries(folders)) {
    for (const path of ['LICENSE', `packaging/${part}/README.md`]) cpSync(join(ROOT, path), join(folder, basename(path)));
    const packed = execFileSync('npm', ['pack', '--silent', '--pack-destination', OUT], { cwd: folder, encoding: 'utf8' });
    process.stdout.write(`${join(OUT, packed.trim())}\n`);
  }
}

void main();
