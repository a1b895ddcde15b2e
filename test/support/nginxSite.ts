/** Makes hosting/nginx/nginx.conf ready for a test, with the changes that hosting/README.md asks an operator to make. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './cli.ts';

const SITE = readFileSync(join(ROOT, 'hosting/nginx/nginx.conf'), 'utf8');

/** Replaces a text in a shipped file. The text must occur exactly once. */
export function replaceOnce(text: string, from: string, to: string): string {
  if (text.split(from).length !== 2) throw new Error(`${JSON.stringify(from)} is not there once any more`);
  return text.replace(from, () => to);
}

/**
 * Returns the configuration that serves a build on a port of 127.0.0.1. If `exactPort` is given, requests without a page go to the `npm
 * start` that listens on this port.
 */
export function nginxSite(build: string, port: number, exactPort?: number): string {
  let site = replaceOnce(SITE, 'listen 80;', `listen 127.0.0.1:${port};`);
  site = replaceOnce(site, 'listen [::]:80;', '');
  site = replaceOnce(site, '/srv/rune-activity-mirror/dist;', `${build};`);
  if (exactPort === undefined) return site;
  site = replaceOnce(site, '$mirror_bare_file @refuse;', '$mirror_bare_file @exact;');
  site = replaceOnce(site, 'try_files $mirror_file @refuse;', 'try_files $mirror_file @exact;');
  return replaceOnce(site, '127.0.0.1:3000', `127.0.0.1:${exactPort}`);
}
