/**
 * What the page says about its build, and where the mirror is.
 */
import type { Site } from '../../pages/lists.ts';
import { byId } from './dom.ts';

export const settings: Site = { ...JSON.parse(byId('settings').textContent ?? ''), compress: [], parquet: false };

/** The address of the mirror, with a slash at its end: the folder of this script, whatever page of it is open. */
export const BASE = new URL('.', import.meta.url).href;
