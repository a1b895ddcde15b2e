/** Separate bundle for the part of the client that answers from lists of an archive. */
export { answerFromLists } from '../../lists/answers.ts';
export { classifyOutputs } from '../../lists/classifyOutputs.ts';
export { openRuneNames } from '../../lists/runeNames.ts';
export { ChangesError, followChanges } from './changes.ts';
export { groupedReads } from './groupedReads.ts';
