/**
 * One folder for everything that a test run writes, removed at its end. Not after each test: ext4 hesitates to reuse the inodes of files
 * that were deleted a moment ago, which makes builds right after a clean-up ten times slower.
 */
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export default function setup(): () => Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'rune-activity-mirror-'));
  process.env['MIRROR_TEST_FOLDER'] = folder;
  return () => rm(folder, { recursive: true, force: true });
}
