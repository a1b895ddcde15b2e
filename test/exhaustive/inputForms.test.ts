/**
 * The complete recorded data in every input form. test/input/inputForms.test.ts has some blocks, in the other dialect of each
 * form.
 */
import { DIALECTS } from '../../src/pages/mirrorOptions.ts';
import { describeForms } from '../support/inputForms.ts';

// All but the one block of 5,000 records, which would be most of the work and shows nothing more.
describeForms(
  (height) => height !== 840_001,
  (form) => DIALECTS.filter((_, i) => i !== form % DIALECTS.length),
);
