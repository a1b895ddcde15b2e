/**
 * User and password for the RPC interface of Bitcoin Core. They come from a cookie file or from the environment, but
 * not from the command line, because other users of the machine can read command lines. No message shows them.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SECRETS } from '../../cli/environment.ts';
import { codeOf, InputError } from '../../errors.ts';

const { rpcUser: USER_VARIABLE, rpcPassword: PASSWORD_VARIABLE } = SECRETS;

/** Subfolder of Bitcoin Core's data folder that has the cookie file, by the default RPC port of each test network. */
const COOKIE_FOLDERS: Readonly<Record<string, string>> = { '38332': 'signet', '48332': 'testnet4', '18443': 'regtest' };

export interface CredentialOptions {
  readonly url: URL;
  /** Path of the cookie file that the user gave. */
  readonly cookie: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Home folder of the user. */
  readonly home: string;
}

/** True if the host name of a URL is this machine. */
export const isLoopback = (url: URL): boolean => /^(?:localhost|127(?:\.[0-9]+){3}|\[::1\])$/.test(url.hostname);

export class Credentials {
  #header: string;

  private constructor(
    /** Description of the credentials' source for messages. */
    readonly source: string,
    /** True for the default cookie file, which the user did not name. If the node rejects it, only REST is used. */
    readonly areDefault: boolean,
    readonly cookie: string | undefined,
    header: string,
  ) {
    this.#header = header;
  }

  /**
   * Finds credentials: in the given cookie file, in the environment, or in the default cookie file of a node on this
   * machine. Returns undefined if there are none. Throws an InputError if the user gave invalid credentials.
   */
  static find({ url, cookie, environment, home }: CredentialOptions): Credentials | undefined {
    if (cookie !== undefined) return new Credentials(`the cookie file ${cookie}`, false, cookie, readCookie(cookie));
    const [user, password] = [environment[USER_VARIABLE] ?? '', environment[PASSWORD_VARIABLE] ?? ''];
    if (user !== '' || password !== '') {
      if (user === '' || password === '') {
        const [given, missing] = user === '' ? [PASSWORD_VARIABLE, USER_VARIABLE] : [USER_VARIABLE, PASSWORD_VARIABLE];
        throw new InputError(`the environment variable ${given} is set, but ${missing} is not`, ['Set both, or neither.']);
      }
      return new Credentials(`${USER_VARIABLE} and ${PASSWORD_VARIABLE}`, false, undefined, headerOf(`${user}:${password}`));
    }
    if (!isLoopback(url)) return undefined;
    const path = join(home, '.bitcoin', COOKIE_FOLDERS[url.port] ?? '', '.cookie');
    try {
      return new Credentials(`the cookie file ${path}`, true, path, readCookie(path));
    } catch (error) {
      if (error instanceof InputError) return undefined;
      throw error;
    }
  }

  /** Value of the header `authorization`. */
  get header(): string {
    return this.#header;
  }

  /** Removes the credentials from text of a server, because an error page may repeat the request. */
  hide(text: string): string {
    const [, encoded = ''] = this.#header.split(' ');
    const both = Buffer.from(encoded, 'base64').toString('utf8');
    return [encoded, both.slice(both.indexOf(':') + 1)].reduce((rest, secret) => rest.replaceAll(secret, '...'), text);
  }

  /**
   * Reads the cookie file again, because a node writes a new cookie at each start. Returns true if a retry can help:
   * the header no longer is `refused`, the header that the node rejected. Another call may already have changed it.
   */
  refresh(refused: string): boolean {
    if (this.cookie === undefined) return false;
    try {
      this.#header = readCookie(this.cookie);
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
    }
    return this.#header !== refused;
  }
}

const headerOf = (userAndPassword: string): string => `Basic ${Buffer.from(userAndPassword, 'utf8').toString('base64')}`;

function readCookie(path: string): string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').trim();
  } catch (error) {
    throw new InputError(`cannot read the cookie file ${path} (${codeOf(error)})`, [
      'Bitcoin Core makes this file in its data folder while it runs, readable for its own user. Check --cookie and the rights of the file.',
    ]);
  }
  if (!/^[^:\s]+:\S+$/.test(text) || text.length > 1000)
    throw new InputError(`${path} is not a cookie file of Bitcoin Core: it should have one line of user, colon and password`);
  return headerOf(text);
}
