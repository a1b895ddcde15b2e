/** nginx in front of a build of layout `files`, as hosting/nginx sets it up: pages are files, and what is no page is answered by npm start behind it. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../test/support/postgres.ts';
import { Started } from './processes.ts';

const SITE = readFileSync(new URL('../../hosting/nginx/nginx.conf', import.meta.url), 'utf8');

export async function startNginx(build: string, folder: string, upstream: number): Promise<{ started: Started; port: number }> {
  const port = await freePort();
  const home = join(folder, 'nginx');
  mkdirSync(home);
  writeFileSync(join(home, 'site.conf'), siteOf(build, port, upstream));
  const path = join(home, 'nginx.conf');
  writeFileSync(path, mainOf(home));
  const started = new Started('nginx', 'nginx', ['-p', home, '-e', 'stderr', '-c', path]);
  await started.listening(port);
  return { started, port };
}

/** The site with what an operator changes: the address, the folder, and the program behind it. */
function siteOf(build: string, port: number, upstream: number): string {
  const changes: readonly [string, string][] = [
    ['listen 80;', `listen 127.0.0.1:${port};`],
    ['listen [::]:80;', ''],
    ['/srv/rune-activity-mirror/dist;', `${build};`],
    ['$mirror_bare_file @refuse;', '$mirror_bare_file @exact;'],
    ['127.0.0.1:3000', `127.0.0.1:${upstream}`],
  ];
  return changes.reduce((site, [from, to]) => {
    if (!site.includes(from)) throw new Error(`hosting/nginx/nginx.conf has no "${from}" any more`);
    return site.replace(from, () => to);
  }, SITE);
}

const mainOf = (home: string): string => `
daemon off;
worker_processes 1;
pid ${home}/nginx.pid;
events { worker_connections 1024; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${home}/${name};`).join('\n  ')}
  include ${home}/site.conf;
}
`;
