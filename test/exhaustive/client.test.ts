/** Compares the client's answers with the recorded requests, for every kind of host, in each layout and dialect. */
import { DIALECTS, LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import { describeRecorded, HOSTS } from '../support/clientHosts.ts';

describeRecorded(
  Object.keys(HOSTS).flatMap((host) => LAYOUTS.flatMap((layout) => DIALECTS.map((dialect) => [host, layout, dialect] as const))),
);
