/** Tests the links of documents and the files that they name. */
import { existsSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../support/cli.ts';
import { PAGES, proseOf, readPage as read, withoutBlocks } from '../support/pages.ts';
import { WRITTEN } from '../support/writtenDocs.ts';

/** Returns the anchors that GitHub makes from the headings of a page. */
function anchorsOf(page: string): Set<string> {
  const headings = [
    ...read(page)
      .replace(/^```[\s\S]*?^```$/gm, '')
      .matchAll(/^#{1,6} (.*)$/gm),
  ].map(([, text = '']) => text);
  const slugs = headings.map((text) =>
    text
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
  return new Set(
    slugs.map((slug, i) => (slugs.indexOf(slug) === i ? slug : `${slug}-${slugs.slice(0, i).filter((one) => one === slug).length}`)),
  );
}

/** Returns the targets of a page's links, except URLs. */
const linksOf = (page: string) =>
  [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, to = '']) => to).filter((to) => !/^[a-z]+:/.test(to));

/** Returns the path from the root to which a link on a page leads, without the anchor. */
const targetOf = (page: string, link: string): string => {
  const [path = ''] = link.split('#');
  return path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path));
};

it.each(Object.entries(WRITTEN))('%s has what npm run docs writes', (path, written) => {
  expect(read(path)).toBe(written(read(path)));
});

it('the list of documents has pages with links', () => {
  expect(PAGES).toContain('hosting/README.md');
  expect(PAGES.flatMap(linksOf).length).toBeGreaterThan(30);
});

it.each(PAGES)('the links of %s lead to files and headings', (page) => {
  const wrong = linksOf(page).filter((link) => {
    const [, anchor] = link.split('#');
    const target = targetOf(page, link);
    if (!existsSync(join(ROOT, target))) return true;
    return anchor !== undefined && !anchorsOf(target).has(anchor);
  });
  expect(wrong).toEqual([]);
});

it('documents name only files of the source that exist', () => {
  const named = PAGES.filter((page) => page !== 'CHANGELOG.md').flatMap((page) =>
    [...withoutBlocks(page).matchAll(/`((?:bench|hosting|scripts|src|test)\/[\w./-]+\.\w+)`/g)].map(([, path = '']) => path),
  );
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

it('every document is reachable from the README', () => {
  const reached = new Set(['README.md']);
  for (const page of reached) {
    for (const link of linksOf(page)) if (PAGES.includes(targetOf(page, link))) reached.add(targetOf(page, link));
  }
  expect(PAGES.filter((page) => !reached.has(page))).toEqual([]);
});
