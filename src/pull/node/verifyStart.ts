/**
 * Verifies the start of a pull (startFrom.ts) with another pull, which read all blocks: the ledger that follows from
 * its rows must have the digest of the start. No other check finds wrong amounts, mints, burns and names in a start.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BlocksFile, blocksFile, type Start } from '../../contract/sources.ts';
import type { Store } from '../../duckdb/store.ts';
import { CliError, EXIT, InputError, messageOf } from '../../errors.ts';
import { BLOCKS_FILE } from '../../input/blocksRead.ts';
import type { WorkLimits } from '../../limits.ts';
import { digestOfRows } from '../../rows/ledgerOfRows.ts';
import { listPulledFiles, PULLED_FOLDER, readRunes, STATE_FOLDER } from '../pulledFiles.ts';

/**
 * Rejects with an InputError unless a pull from a node wrote the folder `history` and read all blocks up to the start.
 * Rejects with exit code 4 if its rows give another digest. `blocks.json` alone does not prove that the pull was from a
 * node, because a pull from a mirror copies the `sources` of the mirror. Only a pull from a node has a state folder.
 */
export async function verifyStart(
  start: Start,
  history: string,
  { network, firstHeight }: { readonly network: string; readonly firstHeight: number },
  limits: WorkLimits,
  store: Store,
): Promise<void> {
  const folder = join(history, PULLED_FOLDER);
  const list = readList(folder);
  const isWhole = list.sources.some(
    ({ rules, blocks }) => rules === 'ord' && blocks.some(([first, last]) => first <= firstHeight && start.height <= last),
  );
  const wasReadHere = existsSync(join(folder, STATE_FOLDER));
  if (!isWhole || !wasReadHere || list.network !== network || (list.start !== undefined && list.start.class !== 'verified'))
    throw new InputError(`${folder} is not a pull from a node of ${network} that read all blocks up to ${start.height}`, [
      'Pull all blocks from a node into another folder, and name it with --verify-start.',
    ]);
  const files = listPulledFiles(folder).filter(({ first }) => first <= start.height);
  const paths = files.map(({ path }) => join(folder, path));
  const digest = await digestOfRows({ network, point: start, paths, runes: readRunes(folder) }, limits, store);
  if (digest === start.digest) return;
  throw new CliError(
    `the blocks up to ${start.height} give the ledger digest ${digest}, but the start has ${start.digest}: ${start.donors.join(', ')} published a wrong ledger`,
    EXIT.verificationFailed,
    [`Use ${folder} instead of this start.`],
  );
}

function readList(folder: string): BlocksFile {
  try {
    return blocksFile.parse(JSON.parse(readFileSync(join(folder, BLOCKS_FILE), 'utf8')));
  } catch (error) {
    throw new InputError(`${join(folder, BLOCKS_FILE)} cannot be read: ${messageOf(error)}`, ['Name the folder of a pull.']);
  }
}
