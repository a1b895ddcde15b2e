/** A separate bundle, lists.js, with parts of the client that most programs do not need when they start. */

export { answerFromLists } from '../../lists/answers.ts';
export { classifyOutputs } from '../../lists/classifyOutputs.ts';
export { openRuneNames } from '../../lists/etchings.ts';
export { allEntries } from './allEntries.ts';
export { followChanges } from './changes.ts';
export { groupedReads } from './groupedReads.ts';
