/** Setup of files whose processes run the bundles of bundles.ts: those that tests start, and those that pulls start. */
import { program } from '../../src/program.ts';

const runner = process.env['MIRROR_TEST_BUNDLES'];
if (runner === undefined) throw new Error('test/support/bundles.ts has made no bundles');
process.env['MIRROR_TEST_PROGRAM'] = runner;
Object.assign(program, { runner });
