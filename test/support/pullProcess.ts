/**
 * Runs `testPull` in a process of its own, so that a test can kill it. Unlike a command, it has the limits of the suite (limits.ts).
 * Arguments: source, folder, confirmations.
 */
import { argv } from 'node:process';
import { testPull } from './pull.ts';

const [from = '', to = '', confirmations] = argv.slice(2);
await testPull(from, to, { confirmations: Number(confirmations) });
