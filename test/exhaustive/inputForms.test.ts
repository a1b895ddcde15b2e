/**
 * Builds the complete recorded data from every input format. test/input/inputForms.test.ts has some blocks, in the
 * other dialect of each format.
 */
import { DIALECTS } from '../../src/pages/mirrorOptions.ts';
import { describeForms } from '../support/inputForms.ts';

// Leaves out one block of 5,000 records, which would take most of the time and cover nothing more.
describeForms(
  (height) => height !== 840_001,
  (form) => DIALECTS.filter((_, i) => i !== form % DIALECTS.length),
);
