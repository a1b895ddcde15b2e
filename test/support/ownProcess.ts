/**
 * Runs a local server in its own process, with limits that a test sets: `ownProcess.ts DIR LIMITS`, with LIMITS as JSON. Prints its port,
 * and runs until it is killed.
 */
import { CLIENT_LIMITS } from '../../src/serve/local/clientLimits.ts';
import { startServer } from './server.ts';

const [dir = '', limits = '{}'] = process.argv.slice(2);
void startServer(dir, { limits: { ...CLIENT_LIMITS, ...JSON.parse(limits) } }).then(({ port }) => console.log(`http://127.0.0.1:${port} `));
