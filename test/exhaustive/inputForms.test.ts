/** The recorded data in every input form and both dialects. */
import { DIALECTS } from '../../src/pages/site.ts';
import { describeForms } from '../support/inputForms.ts';

// All but the one block of 5,000 records, which would be most of the work and shows nothing more.
describeForms(
  (height) => height !== 840_001,
  () => DIALECTS,
);
