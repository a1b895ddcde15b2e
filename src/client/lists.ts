/** The part of the client that answers from lists of an archive, as a bundle of its own. */
export { answerFromLists } from '../pages/listAnswers.ts';
