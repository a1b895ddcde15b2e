/** The bundles that `client.js` loads only when they are needed. A program that has these parts already puts them here instead. */
export const later = {
  lists: () => import('./lists.js'),
  pending: () => import('./pending.js'),
  proofs: () => import('./proofs.js'),
};
