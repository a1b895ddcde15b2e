/**
 * The parts of the client that it loads only when they are needed. In `client.js`, each is a bundle of its own. A program that has them
 * already puts them here instead.
 */
export const later = {
  lists: () => import('./lists.js'),
  pending: () => import('./pending.js'),
  proofs: () => import('./proofs.js'),
};
