/** Options of the build, which the page contains, and the URL of the mirror. */
import type { Site } from '../../pages/mirrorOptions.ts';
import { byId } from './dom.ts';

const element = byId('settings');

export const settings: Site = { ...JSON.parse(element.textContent ?? ''), parquet: false };

/** Name of the network in Bitcoin Core, such as `main` or `signet`. Undefined if the mirror does not know it. */
export const NETWORK = element.dataset['network'];

/** Base URL of the mirror, with a trailing slash. It is the folder of this script. */
export const BASE = new URL('.', import.meta.url).href;
