/** Runs hosting/caddy/Caddyfile, unchanged, on a real Caddy. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../support/build.ts';
import { ROOT } from '../support/cli.ts';
import { replaceOnce } from '../support/nginxSite.ts';
import type { LocalHost } from '../support/server.ts';
import { findProgram, type ProgramCall, replaceAll, startProgram } from './plainHost.ts';
import { type HostOptions, testPlainHost } from './plainSuite.ts';

const SITE = readFileSync(join(ROOT, 'hosting/caddy/Caddyfile'), 'utf8');

const startCaddy = (dist: string, options: HostOptions = {}): Promise<LocalHost> => startProgram((port) => configure(port, dist, options));

function configure(port: number, dist: string, { exactPort, pageSizes }: HostOptions): ProgramCall {
  const folder = temporaryFolder();
  let site = replaceOnce(SITE, 'mirror.example.org {', `http://127.0.0.1:${port}, http://a:${port} {\n\tbind 127.0.0.1`);
  site = replaceOnce(site, '/srv/rune-activity-mirror/dist', dist);
  if (exactPort !== undefined) {
    site = replaceOnce(site, 'import mirror_refuse', 'import mirror_exact');
    site = replaceOnce(site, '127.0.0.1:3000', `127.0.0.1:${exactPort}`);
  }
  if (pageSizes !== undefined) {
    site = replaceAll(site, /(page sizes: the smallest\n[^\n]*?=)20/g, `$1${pageSizes[0]}`, 2);
  }
  writeFileSync(join(folder, 'Caddyfile'), `{\n\tadmin off\n\tauto_https off\n}\n${site}`);
  const args = ['run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')];
  return { program: findProgram('caddy'), args, env: { XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder } };
}

testPlainHost({
  name: 'Caddy',
  start: startCaddy,
  wordsAllErrors: false,
  refusedByEngine: [
    '/runes/v1/blocks/840001/activity# refused 404',
    '/runes/v1/blocks/840001/activity#?limit=5 refused 404',
    '/a"b refused 404',
  ],
});
