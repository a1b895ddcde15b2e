/** Renders entries as CSV. Is a separate bundle, which loads with the first download. */
export * from '../../lists/csv.ts';
