/**
 * Answers about lists of an archive. They are apart from all other answers, because the client loads them only when it
 * needs them.
 */
import { answerActivity } from './activityLists.ts';
import { answerBalances } from './balances.ts';
import { answerEtchings } from './etchings.ts';
import type { AnswerFromLists } from './further.ts';
import { answerOutputs } from './outputs.ts';

export const answerFromLists: AnswerFromLists = async (request, dialect, archive) => {
  const { part, window } = request;
  if (part === 'etchings') return answerEtchings(request, archive);
  if (part === 'balances' || part === 'holders') return answerBalances(request, archive);
  if (part === 'outputs') return answerOutputs(request, dialect, archive);
  return window && answerActivity(request, window, archive);
};
