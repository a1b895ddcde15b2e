/**
 * Answers requests from the files of a build, with the reader that hosts and browsers use. Keeps files open, and caches
 * the last texts, because consecutive requests of a comparison often need the same texts.
 */
import { hash } from 'node:crypto';
import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { answerFromLists } from '../../src/lists/answers.ts';
import type { Files, OpenFile } from '../../src/pages/fileAccess.ts';
import { MirrorReader } from '../../src/pages/mirrorReader.ts';
import { refusalBody } from '../../src/serve/http/errorBodies.ts';

/** Number of texts in the cache. A text may have 200 kB. */
const MOST_TEXTS = 100;

/** A cache of the last texts, by name. */
class LastTexts {
  readonly #texts = new Map<string, string | undefined>();

  get(name: string, make: () => string | undefined): string | undefined {
    const text = this.#texts.has(name) ? this.#texts.get(name) : make();
    this.#texts.delete(name);
    this.#texts.set(name, text);
    for (const [oldest] of this.#texts) {
      if (this.#texts.size <= MOST_TEXTS) break;
      this.#texts.delete(oldest);
    }
    return text;
  }
}

export class FolderMirror {
  readonly #texts = new LastTexts();
  readonly #open = new Map<string, { readonly file: number; readonly size: number }>();
  readonly #reader: MirrorReader<OpenFile>;

  constructor(folder: string) {
    const files: Files<OpenFile> = {
      open: async (path) => {
        const content = this.#texts.get(path, () => contentOf(join(folder, path)));
        return content === undefined ? undefined : { text: async () => content };
      },
      read: async (path, offset, length) => this.#read(join(folder, path), offset, length),
      inflate: async (member, most) => {
        const name = hash('sha1', member);
        return this.#texts.get(name, () => gunzipSync(member, { maxOutputLength: most }).toString()) ?? '';
      },
    };
    // The manifest never expires, because a build is not replaced while it is compared.
    this.#reader = new MirrorReader(files, answerFromLists, Infinity);
  }

  /** Returns status and body of the answer to a GET. */
  async get(target: string): Promise<{ readonly status: number; readonly body: string }> {
    const answer = await this.#reader.answer(target);
    if (answer.kind === 'page') return { status: 200, body: await answer.page.text() };
    if (answer.kind === 'window') return { status: 200, body: answer.body };
    return answer.kind === 'refusal' ? refusalBody(answer) : { status: 404, body: '' };
  }

  close(): void {
    for (const { file } of this.#open.values()) closeSync(file);
  }

  #read(path: string, offset: number, length: number): Uint8Array | undefined {
    const opened = this.#open.get(path) ?? openedAt(path);
    if (opened === undefined) return undefined;
    this.#open.set(path, opened);
    if (offset + length > opened.size) return undefined;
    const bytes = Buffer.allocUnsafe(length);
    for (let done = 0; done < length; ) done += readSync(opened.file, bytes, done, length - done, offset + done);
    return bytes;
  }
}

function openedAt(path: string): { readonly file: number; readonly size: number } | undefined {
  try {
    const file = openSync(path, 'r');
    return { file, size: fstatSync(file).size };
  } catch {
    return undefined;
  }
}

function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
