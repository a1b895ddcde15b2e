/** Starts nginx for benchmarks. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Started } from './processes.ts';

/**
 * Starts nginx with these lines in its block `http`, and waits until it listens on the port. `home` is a folder for its files. As root,
 * workers of nginx run as another user; `processes` may keep them from it.
 */
export async function startNginx(home: string, port: number, http: string, processes = 'worker_processes 1'): Promise<Started> {
  mkdirSync(home, { recursive: true });
  const path = join(home, 'nginx.conf');
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${home}/${name};`);
  writeFileSync(
    path,
    `
daemon off;
${processes};
pid ${home}/nginx.pid;
events { worker_connections 1024; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000;
  ${temporary.join('\n  ')}
  ${http}
}
`,
  );
  const started = new Started('nginx', 'nginx', ['-p', home, '-e', 'stderr', '-c', path]);
  await started.listening(port);
  return started;
}
