/** Tests that the documents agree with the program about settings and messages. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { filesBelow } from '../support/build.ts';
import { ROOT } from '../support/cli.ts';
import { PAGES, readPage } from '../support/pages.ts';

const ALL_PAGES = PAGES.filter((page) => page !== 'CHANGELOG.md')
  .map(readPage)
  .join('\n');
const CODE = ['src', 'scripts']
  .flatMap((folder) => filesBelow(join(ROOT, folder)).map((path) => `${folder}/${path}`))
  .filter((path) => /\.[cm]?[jt]sx?$/.test(path));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

describe('the documents name', () => {
  it('every variable of the environment that the program reads', () => {
    const names = CODE.flatMap((path) => {
      const text = read(path);
      return [...text.matchAll(/process\.env(?:\.(\w+)|\['(\w+)'\]|\[(\w+)\])/g)].map(
        ([, plain, quoted, constant]) =>
          plain ?? quoted ?? new RegExp(`\\b${constant} = '(\\w+)'`).exec(text)?.[1] ?? `${constant}, in ${path}`,
      );
    });
    expect(names).toContain('NO_COLOR');
    expect(names.filter((name) => !ALL_PAGES.includes(`\`${name}\``))).toEqual([]);
  });

  it('every setting of the Cloudflare worker', () => {
    const [, settings = ''] = /interface Settings \{([^}]*)\}/.exec(read('src/serve/cloudflare/origins.ts')) ?? [];
    const names = [...settings.matchAll(/readonly (\w+)\?/g)].map(([, name = '']) => name);
    expect(names.length).toBe(5);
    expect(names.filter((name) => !readPage('hosting/README.md').includes(`\`${name}\``))).toEqual([]);
  });

  it('every setting of the upload', () => {
    const names = [...read('hosting/upload.sh').matchAll(/\$\{([A-Z_]+):-/g)].map(([, name = '']) => name);
    expect(names).toContain('RCLONE_TRANSFERS');
    expect(names.filter((name) => !new RegExp(`\`${name}[\`=]`).test(readPage('hosting/README.md')))).toEqual([]);
  });
});

/** Replaces each interpolated value in a source text by `…`, also in its SQL, and removes the syntax that joins strings. */
const withoutValues = (text: string): string =>
  text
    .replace(/' \|\| [a-z_.]+\s+\|\| '| % /g, ' … ')
    .replace(/\$\{(?:[^{}]|\{[^{}]*\})*\}|\$\((?:[^()]|\([^()]*\))*\)|\{[a-z_.]+\}|\$\w+/g, '…')
    .replace(/\\(['"])/g, '$1')
    .replace(/…(?:…)+/g, '…');

describe('"Troubleshooting" of docs/run-a-mirror.md', () => {
  // Returns the code before the first colon of each entry. Colons within code are skipped.
  const [, section = ''] = /^## Troubleshooting\n([\s\S]*?)(?=^## |(?![\s\S]))/m.exec(readPage('docs/run-a-mirror.md')) ?? [];
  const quoted = section
    .replace(/\n {2}/g, ' ')
    .split('\n')
    .filter((line) => line.startsWith('- '))
    .flatMap((line) => [...(/^(?:[^`:]|`[^`]*`)*/.exec(line)?.[0] ?? '').matchAll(/`([^`]+)`/g)].map(([, message = '']) => message))
    .filter((message) => message !== 'total: 0');
  const sources = [...CODE, 'hosting/upload.sh', 'hosting/nginx/nginx.conf', 'hosting/caddy/Caddyfile'].map(read).map(withoutValues);

  it('quotes messages', () => {
    expect(quoted.length).toBeGreaterThan(15);
  });

  it.each(quoted)('%s: is a message of the program', (message) => {
    const parts = message.split('…').filter((part) => part.trim().length > 3);
    const pattern = parts.map((part) => part.trim().replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('[^\\n]*');
    expect(sources.filter((text) => new RegExp(pattern).test(text))).not.toEqual([]);
  });
});
