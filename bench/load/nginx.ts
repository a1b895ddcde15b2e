/**
 * Starts nginx over a build of layout `files`, as in hosting/nginx. nginx forwards requests without a file to `npm
 * start`.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nginxSite } from '../../test/support/nginxSite.ts';
import { freePort } from '../../test/support/ports.ts';
import { Started } from './processes.ts';

/** Starts nginx on a free port. `upstream` is the port of npm start. */
export async function startNginx(build: string, folder: string, upstream: number): Promise<{ started: Started; port: number }> {
  const port = await freePort();
  const home = join(folder, 'nginx');
  mkdirSync(home);
  writeFileSync(join(home, 'site.conf'), nginxSite(build, port, upstream));
  const path = join(home, 'nginx.conf');
  writeFileSync(path, nginxMain(home, `include ${home}/site.conf;`));
  const started = new Started('nginx', 'nginx', ['-p', home, '-e', 'stderr', '-c', path]);
  await started.listening(port);
  return { started, port };
}

/**
 * Returns a configuration of nginx with these lines in its block `http`. `home` is a folder for its files. As root, workers
 * of nginx run as another user; `processes` may keep them from it.
 */
export const nginxMain = (home: string, http: string, processes = 'worker_processes 1'): string => `
daemon off;
${processes};
pid ${home}/nginx.pid;
events { worker_connections 1024; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${home}/${name};`).join('\n  ')}
  ${http}
}
`;
