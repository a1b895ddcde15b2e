/** Separate bundle for the parts of the client that few programs need at their start. Most answer from lists of an archive. */
export { answerFromLists } from '../../lists/answers.ts';
export { classifyOutputs } from '../../lists/classifyOutputs.ts';
export { openRuneNames } from '../../lists/runeNames.ts';
export { allEntries } from './allEntries.ts';
export { ChangesError, followChanges } from './changes.ts';
export { groupedReads } from './groupedReads.ts';
