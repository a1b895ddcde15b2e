/** Answers requests for lists of an archive. This is a separate module, so that the client can load it on demand. */
import type { AnswerFromLists } from '../pages/optionalEndpoints.ts';
import { answerActivity } from './activity.ts';
import { answerBalances } from './balances.ts';
import { answerEtchings } from './etchings.ts';
import { answerOutputs } from './unspentOutputs.ts';

export const answerFromLists: AnswerFromLists = async (request, dialect, archive, readTransaction) => {
  const { part, window } = request;
  if (part === 'etchings') return answerEtchings(request, dialect, archive);
  if (part === 'balances' || part === 'holders') return answerBalances(request, archive);
  if (part === 'outputs') return answerOutputs(request, dialect, archive, readTransaction);
  part satisfies 'rune_activity' | 'address_activity';
  return window && answerActivity(request, window, archive);
};
