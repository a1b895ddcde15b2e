/**
 * Setup of test files whose processes run the bundles of bundles.ts. This includes processes that pulls start. Builds within the test
 * process use the site assets of the bundles, so that no worker makes them again.
 */
import { dirname, join } from 'node:path';
import { program } from '../../src/program.ts';

const runner = process.env['MIRROR_TEST_BUNDLES'];
if (runner === undefined) throw new Error('test/support/bundles.ts has made no bundles');
process.env['MIRROR_TEST_PROGRAM'] = runner;
Object.assign(program, { runner, assets: join(dirname(runner), 'assets') });
