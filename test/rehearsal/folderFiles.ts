/** Answers requests from the files of a build like the local server, but without HTTP. */
import { PartCache } from '../../src/format/partCache.ts';
import { SERVER_LIMITS } from '../../src/limits.ts';
import { answerFromLists } from '../../src/lists/answers.ts';
import type { BuiltSite } from '../../src/pages/mirrorOptions.ts';
import { respond } from '../../src/pages/respond.ts';
import { refusalBody } from '../../src/serve/http/errorBodies.ts';
import { BuiltFiles } from '../../src/serve/local/builtFiles.ts';
import { WatchedBuild } from '../../src/serve/local/watchedBuild.ts';

/** The files of the server have one character per byte. */
const decoded = (text: string): string => Buffer.from(text, 'latin1').toString();

export class FolderMirror {
  /** Never changes, because a build is not replaced while it is compared. */
  readonly #site: BuiltSite;
  readonly #files: BuiltFiles;
  readonly #cache = new PartCache(SERVER_LIMITS.partBytes, new PartCache(SERVER_LIMITS.pageBytes));

  constructor(folder: string) {
    this.#site = new WatchedBuild(folder).last;
    this.#files = new BuiltFiles(folder);
  }

  /** Returns status and body of the answer to a GET. */
  async get(target: string): Promise<{ readonly status: number; readonly body: string }> {
    const answer = await respond(target, this.#site, this.#files, answerFromLists, this.#cache);
    if (answer.kind === 'page') return { status: 200, body: decoded(await answer.page.text()) };
    if (answer.kind === 'window') return { status: 200, body: decoded(answer.body) };
    return answer.kind === 'refusal' ? refusalBody(answer) : { status: 404, body: '' };
  }

  close(): void {
    this.#files.close();
  }
}
