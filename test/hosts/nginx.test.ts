/** Runs hosting/nginx/nginx.conf, unchanged, on a real nginx. */
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder, testBuild } from '../support/build.ts';
import { SAMPLE_INPUT } from '../support/cases.ts';
import { nginxSite, replaceOnce } from '../support/nginxSite.ts';
import type { LocalHost } from '../support/server.ts';
import { findProgram, type ProgramCall, replaceAll, startProgram } from './plainHost.ts';
import { type HostOptions, testPlainHost } from './plainSuite.ts';

/** Starts nginx as in a distribution, whose main configuration file includes the site. */
const startNginx = (dist: string, options: HostOptions = {}, more?: 'no links'): Promise<LocalHost> =>
  startProgram((port) => configure(port, dist, options, more));

function configure(port: number, dist: string, { exactPort, pageSizes }: HostOptions, more: 'no links' | undefined): ProgramCall {
  const folder = temporaryFolder();
  let site = nginxSite(dist, port, exactPort);
  if (pageSizes !== undefined) {
    site = replaceAll(site, /20(.*page sizes: the smallest)/g, `${pageSizes[0]}$1`, 2);
  }
  if (more === 'no links') site = replaceOnce(site, '#disable_symlinks', 'disable_symlinks');
  writeFileSync(join(folder, 'site.conf'), site);
  const main = `
    daemon off;
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    pid ${folder}/nginx.pid;
    error_log ${folder}/error.log;
    events {}
    http {
      access_log off;
      include /etc/nginx/mime.types;
      default_type application/octet-stream;
      gzip on;
      ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join('\n')}
      include ${folder}/site.conf;
    }`;
  writeFileSync(join(folder, 'nginx.conf'), main);
  return { program: findProgram('nginx'), args: ['-p', `${folder}/`, '-c', 'nginx.conf', '-e', `${folder}/error.log`] };
}

testPlainHost({
  name: 'nginx',
  start: startNginx,
  wordsAllErrors: true,
  refusedByEngine: [
    '/runes/v1/blocks/840001.json%00 refused 400',
    '/runes/v1/blocks/840001%00.html/activity refused 400',
    '/.. refused 400',
    '/../ refused 400',
    '/../../../../etc/passwd refused 400',
    '/..%2f..%2f..%2fetc/passwd refused 400',
    '/%2e%2e/%2e%2e/etc/passwd refused 400',
    '/mirror-error refused 404',
  ],
});

it('nginx follows no symbolic links if its configuration forbids them', async () => {
  const dist = join(temporaryFolder(), 'dist');
  await testBuild(dist, { inputs: [SAMPLE_INPUT] });
  symlinkSync(join(dist, 'runes/v1/manifest.json'), join(dist, 'runes/v1/linked.json'));
  const host = await startNginx(dist, {}, 'no links');
  try {
    expect((await host.send('GET', '/runes/v1/linked.json')).status).toBe(404);
    expect((await host.send('GET', '/runes/v1/manifest.json')).status).toBe(200);
  } finally {
    await host.close();
  }
});
