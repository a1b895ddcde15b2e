/** Compares the blocks of two mirrors by their digests, and reports by which rules each mirror made its rows. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { count, type Log } from '../cli/log.ts';
import { isPlainHttp } from '../contract/plainUrl.ts';
import { manifest as manifestSchema, misfitOf } from '../contract/schemas.ts';
import { describeSources } from '../contract/sources.ts';
import { InputError, UsageError } from '../errors.ts';
import { digestOfBlocks, readDigests } from '../output/digests.ts';
import { MANIFEST_PATH } from '../pages/filePaths.ts';
import { Client, DEFAULTS } from '../pull/httpClient.ts';
import { baseOf, digestsPaths, findManifest, impossible, type Listing, readListing } from '../pull/mirror/mirrorSource.ts';
import { VerificationError } from './findings.ts';

/** Maximum number of heights to show of each list of blocks. Others are only counted. */
const SHOWN = 10;

/** Another mirror: a folder, or the URL before `/runes/v1`. */
export type Other = string | URL;

/** Parses --against. Throws a UsageError for a URL that cannot be a mirror's. */
export function parseAgainst(text: string): Other {
  if (!/^[a-z]+:\/\//.test(text)) return text;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && isPlainHttp(url)) return url;
  // The message does not show the URL, which may contain a password.
  throw new UsageError('--against must be a folder, or an http(s) URL without user, password, query and fragment');
}

/**
 * Compares a verified output with another mirror, of which only the manifest and the digests are read. Logs the result.
 * Throws a VerificationError if a block that both have differs.
 */
export async function compareWith(dir: string, own: Listing, other: Other, log: Log): Promise<void> {
  const name = typeof other === 'string' ? other : baseOf(other);
  const theirs = typeof other === 'string' ? readFolder(other) : await readUrl(name, log);
  if (theirs.manifest.digest === own.manifest.digest) {
    log.info('compared', `${dir} and ${name} have the same data: digest ${own.manifest.digest}.`, { against: name, different: 0 });
    return;
  }
  const [ours, known] = [byHeight(own), byHeight(theirs)];
  const common = own.blocks.filter(({ height }) => known.has(height));
  const different = common.filter(({ height, digest }) => known.get(height)?.digest !== digest);
  const forked = different.filter(({ height, hash }) => known.get(height)?.hash !== hash);
  const onlyHere = own.blocks.filter(({ height }) => !known.has(height));
  const onlyThere = theirs.blocks.filter(({ height }) => !ours.has(height));
  const details = [
    ...(different.length > 0 ? [`different: ${listed(different)}`] : []),
    ...(forked.length > 0 ? [`different block hashes, so of another chain: ${listed(forked)}`] : []),
    ...(onlyHere.length > 0 ? [`only ${dir} has ${listed(onlyHere)}`] : []),
    ...(onlyThere.length > 0 ? [`only ${name} has ${listed(onlyThere)}`] : []),
    `rows of ${dir}: ${rulesOf(own)}`,
    `rows of ${name}: ${rulesOf(theirs)}`,
  ];
  if (different.length > 0) {
    throw new VerificationError(
      `${dir} and ${name} differ in ${different.length} of the ${count(common.length, 'block')} that both have`,
      details,
    );
  }
  log.info('compared', `${dir} and ${name} agree in the ${count(common.length, 'block')} that both have.\n  ${details.join('\n  ')}`, {
    against: name,
    different: 0,
    common: common.length,
    only_here: onlyHere.length,
    only_there: onlyThere.length,
  });
}

const byHeight = ({ blocks }: Listing) => new Map(blocks.map((block) => [block.height, block]));

/** Returns the number of blocks, and the first of their heights. */
function listed(blocks: readonly { readonly height: number }[]): string {
  const heights = blocks.slice(0, SHOWN).map(({ height }) => height);
  return `${count(blocks.length, 'block')}, ${heights.join(', ')}${blocks.length > SHOWN ? ' …' : ''}`;
}

const rulesOf = ({ manifest: { sources = [] } }: Listing): string =>
  sources.length === 0 ? 'its manifest does not say from where' : `from ${describeSources(sources)}`;

function readFolder(root: string): Listing {
  try {
    const found = manifestSchema.parse(JSON.parse(readFileSync(join(root, MANIFEST_PATH), 'utf8')));
    const wrong = impossible(found);
    if (wrong !== undefined) throw new Error(`its manifest ${wrong}`);
    const blocks = [...digestsPaths(found)].flatMap((path) => readDigests(readFileSync(join(root, path), 'utf8'), path));
    if (digestOfBlocks(blocks) !== found.digest) throw new Error('its block digests do not match the digest in its manifest');
    return { manifest: found, blocks };
  } catch (error) {
    throw new InputError(`${root} cannot be compared: ${misfitOf(error)}`, [
      'Give the output folder of a build with --against, and verify it first.',
    ]);
  }
}

async function readUrl(base: string, log: Log): Promise<Listing> {
  const onRetry = (why: string) => log.notice(`${why}; trying again`);
  const client = new Client({ ...DEFAULTS, headers: {}, signal: new AbortController().signal, onRetry });
  if ((await findManifest(base, client)) === undefined) {
    throw new InputError(`${base} is not a mirror of this program: it has no valid ${MANIFEST_PATH}`, [
      'Give the URL before /runes/v1 with --against.',
    ]);
  }
  return readListing(base, client);
}
