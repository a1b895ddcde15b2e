/** Names in the input folder. */

/** Subfolder of the input folder: a folder of rows (rows/rowsFolder.ts). Pulls replace and remove files only here. */
export const PULLED_FOLDER = 'pulled';

/** Subfolder for temporary files. Builds ignore it. */
export const WORK_FOLDER = '.work';

/** Subfolder for the ledger of a pull from a node. Builds ignore it. */
export const STATE_FOLDER = '.state';
