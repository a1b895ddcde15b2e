/**
 * Sends the recorded requests to the client, and checks its answers. The client reads from every kind of host, in each
 * layout and dialect.
 */
import { DIALECTS, LAYOUTS } from '../../src/pages/mirrorOptions.ts';
import { describeRecorded, HOSTS } from '../support/clientHosts.ts';

describeRecorded(
  Object.keys(HOSTS).flatMap((host) => LAYOUTS.flatMap((layout) => DIALECTS.map((dialect) => [host, layout, dialect] as const))),
);
