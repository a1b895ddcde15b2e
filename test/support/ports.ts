/** Finds free ports for programs that cannot choose a free port themselves. */
import { type AddressInfo, createServer } from 'node:net';

/** Returns a port of 127.0.0.1 that is free at this moment. */
export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer().on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
