/** Defines and parses the flags of the pull command. */
import { CONFIG, type Command, Flags, flag, HELP, LOG } from '../cli/flags.ts';
import { MEMORY_LIMIT, memoryBeside, memoryLimitOf } from '../cli/memoryLimit.ts';
import { readSettings, type Settings, settingsFileOf, withSettings } from '../cli/settings.ts';
import { plainUrl } from '../contract/plainUrl.ts';
import { BUILD_COMMAND, buildOptions } from '../engine/buildCommand.ts';
import type { BuildOptions } from '../engine/buildOptions.ts';
import { UsageError } from '../errors.ts';
import type { Limits } from '../limits.ts';
import { UNSETTLED_BLOCKS } from '../pages/mirrorOptions.ts';
import { program } from '../program.ts';
import type { ClientOptions } from './httpClient.ts';
import type { Check } from './node/checkOutputs.ts';
import type { NodePullOptions } from './node/nodePull.ts';
import { DEFAULTS, type WantedBlocks } from './pullOptions.ts';

export const PULL_COMMAND: Command = {
  section: 'pull',
  call: program.callOf('pull'),
  about: 'Fetches blocks into the input folder from a Bitcoin Core node, or from another mirror.',
  flags: [
    flag('from URL', 'The source: core:http://127.0.0.1:8332 or https://host[/prefix].', { heading: 'What to fetch' }),
    flag('to DIR', 'The input folder. Files are written to its subfolder pulled.', { byDefault: 'input' }),
    flag('blocks RANGE', 'Heights as A.., A..B or ..B; or -N.. for the last N blocks, which removes older ones.', {
      byDefault: 'from the first pulled block, or the first of the source',
    }),
    flag('confirmations N', 'How many of the last blocks to compare again, and to replace if they changed.', {
      byDefault: `${UNSETTLED_BLOCKS}, or 100 with a node`,
    }),
    flag(
      'block-source URL',
      'Server for blocks that the node has pruned: an Esplora API, such as https://host/api, or REST of a node with txindex, such as http://host:8332/rest. Its blocks are checked against the chain of the node.',
      { heading: 'Only with a Bitcoin Core node' },
    ),
    flag('check sample|all', 'Which unspent outputs to compare with the node after it continued rows: 15,000 random ones, or all.', {
      byDefault: 'sample',
    }),
    flag('follow', 'After each new block, pulls it and runs a build. Arguments after a second -- are for the build.'),
    flag('concurrency N', 'Parallel HTTP requests.', { heading: 'Speed and retries', byDefault: '4' }),
    flag('rate N', 'HTTP requests per second; 0 for no limit.', { byDefault: String(DEFAULTS.rate) }),
    flag('retries N', 'Retries of a failed HTTP request.', { byDefault: String(DEFAULTS.retries) }),
    flag('timeout SECONDS', 'Longest time without data from an HTTP server.', { byDefault: String(DEFAULTS.timeoutMs / 1000) }),
    MEMORY_LIMIT,
    CONFIG,
    LOG,
    HELP,
  ],
  examples: [
    { args: '--from https://host', about: 'Pulls the rows of another mirror.' },
    { args: '--from core:http://127.0.0.1:8332 --follow', about: 'Follows a Bitcoin Core node, and builds after each new block.' },
    { args: '--from https://host --blocks -2016..', about: 'Keeps only the last 2,016 blocks.' },
  ],
  positionals: { name: '[-- arguments for the build]', least: 0 },
  exits: ['done', 'usage', 'badInput', 'buildFailed', 'interrupted'],
};

/** Maximum of --confirmations, each with 100 KB of memory or a file. No reorganisation was ever deeper than a hundred blocks. */
const MOST_CONFIRMATIONS = 10_000;

export interface PullRequest extends Omit<NodePullOptions, 'folder'>, Omit<ClientOptions, 'concurrency' | 'onRetry'> {
  readonly to: string;
  /** An `http(s):` URL, which may end with `/runes/v1`; or the URL of a node. */
  readonly from: URL | NodeUrl;
  readonly blockSource?: URL | undefined;
  /** Memory limit of the process, such as `1GB`. */
  readonly memoryLimit: string;
  /** How to build after each pull from a node. If given, the process pulls and builds until the signal aborts. */
  readonly builds?: BuildOptions | undefined;
}

export class NodeUrl {
  constructor(readonly url: URL) {}
}

/** Returns what the flags and the settings of builds say. Throws a UsageError. */
export function pullRequestOf(flags: Flags, limits: Limits, signal: AbortSignal): PullRequest {
  const from = parseFrom(flags.one('from'));
  checkUse(flags, from);
  const memoryLimit = memoryLimitOf(flags);
  const settings = readSettings(settingsFileOf(flags), BUILD_COMMAND);
  return {
    from,
    to: flags.one('to') ?? 'input',
    wanted: parseWanted(flags.one('blocks')),
    confirmations: flags.integer('confirmations', from instanceof NodeUrl ? 100 : UNSETTLED_BLOCKS, 0, MOST_CONFIRMATIONS),
    concurrency: flags.integer('concurrency', 4, 1, 64),
    rate: flags.integer('rate', DEFAULTS.rate, 0, 10_000),
    retries: flags.integer('retries', DEFAULTS.retries, 0, 100),
    timeoutMs: 1000 * flags.integer('timeout', DEFAULTS.timeoutMs / 1000, 1, 3600),
    pauseMs: DEFAULTS.pauseMs,
    blockSource: flags.has('block-source') ? urlOf('block-source', flags.one('block-source') ?? '', 'https://host/api') : undefined,
    check: flags.choice('check', ['sample', 'all'] as const satisfies readonly Check[]),
    builds: flags.has('follow') ? buildsOf(flags.positionals, settings, memoryBeside(memoryLimit), limits) : undefined,
    memoryLimit,
    limits,
    signal,
  };
}

/** Returns how to build the pulled blocks. Checks the arguments at once, because the first pull takes hours. */
function buildsOf(args: readonly string[], settings: Settings, memoryLimit: string, limits: Limits): BuildOptions {
  try {
    const given = Flags.parse(BUILD_COMMAND, args);
    for (const name of ['memory-limit', 'help'])
      if (given.has(name))
        throw new UsageError(
          `--${name} must be given before the -- that begins the arguments of the build: it is for the pull and its builds`,
        );
    return { ...buildOptions(withSettings(given, BUILD_COMMAND, settings), limits), memoryLimit };
  } catch (error) {
    throw error instanceof UsageError ? new UsageError(`the arguments for the build are wrong: ${error.message}`) : error;
  }
}

/** Throws a UsageError for flags that have no effect with this source. */
function checkUse(flags: Flags, from: URL | NodeUrl): void {
  const isNode = from instanceof NodeUrl;
  const unused = isNode ? (flags.has('block-source') ? [] : ['rate']) : ['block-source', 'check', 'follow'];
  const given = unused.find((name) => flags.has(name));
  if (given !== undefined) throw new UsageError(`--${given} has an effect only if --from is ${isNode ? 'not ' : ''}a Bitcoin Core node`);
  if (!isNode && parseWanted(flags.one('blocks')).to !== undefined)
    throw new UsageError('--blocks of a mirror has no end: a mirror is pulled up to its last block. Build a range with build --blocks');
  if (!flags.has('follow') && flags.positionals.length > 0)
    throw new UsageError('arguments after -- are for the builds of --follow, which is not given');
}

/** Default RPC ports of Bitcoin Core: mainnet, signet, testnet4, regtest. */
const NODE_PORTS = ['8332', '38332', '48332', '18443'];

/** Parses a source: `core:` and the URL of a node, or the URL of a mirror. Throws a UsageError. */
export function parseFrom(text: string | undefined): URL | NodeUrl {
  if (text === undefined) throw new UsageError('--from is missing: give a core:http:// or an https:// URL');
  const isNode = text.startsWith('core:');
  const url = urlOf('from', isNode ? text.slice('core:'.length) : text, 'core:http://127.0.0.1:8332 or https://host/prefix');
  if (isNode) return new NodeUrl(url);
  if (url.hostname === 'api.hiro.so')
    throw new UsageError(
      '--from https://api.hiro.so is no source any more: Hiro ended its Runes API in March 2026. Give a node or a mirror',
    );
  if (NODE_PORTS.includes(url.port))
    throw new UsageError('--from has the port of a Bitcoin Core node. Write core: before the URL, as in core:http://127.0.0.1:8332');
  return url;
}

function urlOf(flag: string, text: string, example: string): URL {
  const url = plainUrl(text);
  if (url !== undefined) return url;
  throw new UsageError(`--${flag} must be a URL such as ${example}, without user, password, query and fragment`);
}

/** Parses --blocks. Throws a UsageError for text that is not a range. */
export function parseWanted(text: string | undefined): WantedBlocks {
  if (text === undefined) return { from: undefined, to: undefined };
  const [whole, from = '', to = ''] = /^(-?[0-9]{1,15})?[.][.]([0-9]{1,15})?$/.exec(text) ?? [];
  const last = from.startsWith('-') ? Number(from.slice(1)) : undefined;
  const isRange = whole !== undefined && `${from}${to}` !== '' && (from === '' || to === '' || Number(from) <= Number(to));
  if (!isRange || last === 0 || (last !== undefined && to !== ''))
    throw new UsageError(
      `--blocks ${JSON.stringify(text)} must be heights such as 840000.., 840000..849999 or ..849999, or -2016.. for the last 2016`,
    );
  const first = last === undefined ? (from === '' ? undefined : Number(from)) : { last };
  return { from: first, to: to === '' ? undefined : Number(to) };
}
