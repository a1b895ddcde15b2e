/**
 * Builds the complete recorded data from every input format. test/input/inputForms.test.ts builds only some blocks, and
 * tests each format in the other dialect.
 */
import { DIALECTS } from '../../src/pages/mirrorOptions.ts';
import { describeForms } from '../support/inputForms.ts';

// Omits the block with 5,000 records, which would take most of the time and cover nothing more.
describeForms(
  (height) => height !== 840_001,
  (form) => DIALECTS.filter((_, i) => i !== form % DIALECTS.length),
);
