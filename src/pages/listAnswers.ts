/**
 * Answers about lists of an archive. They are apart from all other answers, because the client loads them only when it
 * needs them.
 */
import type { Archive } from '../archive/reader.ts';
import { answerActivity } from './activityLists.ts';
import { answerBalances } from './balances.ts';
import { answerEtchings } from './etchings.ts';
import type { FurtherRequest } from './further.ts';
import { answerOutputs } from './outputs.ts';
import type { Dialect } from './site.ts';

/** Returns the body of an answer; undefined when there is no such object. Rejects with an ArchiveError for damaged files. */
export type AnswerFromLists = (request: FurtherRequest, dialect: Dialect, archive: Archive) => Promise<string | undefined>;

export const answerFromLists: AnswerFromLists = async (request, dialect, archive) => {
  const { part, window } = request;
  if (part === 'etchings') return answerEtchings(request, archive);
  if (part === 'balances' || part === 'holders') return answerBalances(request, archive);
  if (part === 'outputs') return answerOutputs(request, dialect, archive);
  return window && answerActivity(request, window, archive);
};
