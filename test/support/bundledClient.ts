/** The client module as builds publish it: several bundles, each with its own copies of classes. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as source from '../../src/serve/client/mirrorClient.ts';
import { siteAssets } from '../../src/site/assets.ts';
import { temporaryFolder } from './build.ts';

const folder = temporaryFolder();
for (const [path, content] of siteAssets()) if (/^\w+\.js$/.test(path)) writeFileSync(join(folder, path), content);

export const { classify, Mirror, MirrorError } = (await import(pathToFileURL(join(folder, 'client.js')).href)) as typeof source;
export type Mirror = source.Mirror;
export type MirrorError = source.MirrorError;
