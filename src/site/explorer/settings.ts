/** Options of the build, which the page contains, and the URL of the mirror. */
import type { Site } from '../../pages/mirrorOptions.ts';
import { byId } from './dom.ts';

export const settings: Site = { ...JSON.parse(byId('settings').textContent ?? ''), compress: [], parquet: false };

/** Base URL of the mirror, with a trailing slash. It is the folder of this script. */
export const BASE = new URL('.', import.meta.url).href;
