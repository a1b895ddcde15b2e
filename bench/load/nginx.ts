/** nginx in front of a build of layout `files`: pages are files, and what is no page is answered by npm start behind it. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../test/support/postgres.ts';
import { Started } from './processes.ts';

export async function startNginx(build: string, folder: string, upstream: number): Promise<{ started: Started; port: number }> {
  const port = await freePort();
  const home = join(folder, 'nginx');
  mkdirSync(home);
  const path = join(home, 'nginx.conf');
  writeFileSync(path, configuration(build, home, port, upstream));
  const started = new Started('nginx', 'nginx', ['-p', home, '-e', 'stderr', '-c', path]);
  await started.listening(port);
  return { started, port };
}

const configuration = (build: string, home: string, port: number, upstream: number): string => `
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
  types { application/json json; }
  charset utf-8;
  charset_types application/json;
  map $args $page {
    default no-page;
    "" "";
    "~^limit=20&offset=0$" "";
    "~^limit=(?<limit>20|60)&offset=(?<offset>[0-9]+)$" /$limit/$offset;
  }
  upstream exact {
    server 127.0.0.1:${upstream};
    keepalive 32;
  }
  server {
    listen 127.0.0.1:${port};
    root ${build};
    add_header access-control-allow-origin *;
    add_header cache-control "public, no-cache, must-revalidate";
    add_header x-content-type-options nosniff;
    location ~ ^/runes/v1/(?<stem>(?:transactions/[0-9a-f]+|blocks/[0-9]+))/activity$ {
      try_files /runes/v1/$stem$page.json @exact;
    }
    location @exact {
      proxy_pass http://exact;
      proxy_http_version 1.1;
      proxy_set_header connection "";
    }
  }
}
`;
