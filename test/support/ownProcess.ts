/** A local server with limits of its own, in a process of its own: `ownProcess.ts DIR LIMITS`, limits as JSON. Prints its port; ends when it is killed. */
import { LIMITS } from '../../src/hosts/node/limits.ts';
import { startServer } from './server.ts';

const [dir = '', limits = '{}'] = process.argv.slice(2);
void startServer(dir, { limits: { ...LIMITS, ...JSON.parse(limits) } }).then(({ port }) => console.log(`http://127.0.0.1:${port} `));
