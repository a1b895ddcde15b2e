/** Checks that all hosts give the same answers, because wrong answers would make the benchmark worthless. */
import { Agent, request } from 'node:http';
import { CliError, EXIT } from '../../src/errors.ts';

/** Number of parallel requests per host. */
const AT_ONCE = 8;

interface Asked {
  readonly name: string;
  readonly port: number;
  /**
   * True for the service that the hosts are compared with (bench/peers/service.mjs). It returns total 0 past the end of
   * a list, as Hiro's server did.
   */
  readonly isPeer: boolean;
}

/** Requests every target from every host. Throws at the first answer that differs from the answer of the last host. */
export async function checkAnswers(hosts: readonly Asked[], targets: readonly string[]): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const left = [...new Set(targets)];
  const worker = async (): Promise<void> => {
    for (let target = left.pop(); target !== undefined; target = left.pop()) {
      const answers = await Promise.all(hosts.map(({ port }) => ask(agent, port, target ?? '')));
      const last = answers.at(-1) ?? '';
      const odd = answers.findIndex((answer, i) => answer !== (hosts[i]?.isPeer === true ? withoutLostTotal(last) : last));
      if (odd < 0) continue;
      const details = [odd, hosts.length - 1].map(
        (i) => `${hosts[i]?.name}: ${around(answers[i] ?? '', firstDifference(answers[odd] ?? '', last))}`,
      );
      throw new CliError(`hosts give different answers to ${target}`, EXIT.verificationFailed, details);
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  } finally {
    agent.destroy();
  }
}

const withoutLostTotal = (answer: string): string => answer.replace(/"total":[0-9]+,"results":\[\]\}$/, '"total":0,"results":[]}');

function firstDifference(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  return at;
}

const around = (text: string, at: number): string => `${at > 100 ? '…' : ''}${text.slice(Math.max(0, at - 100), at + 100)}`;

/** Returns status, content type and body of an answer. */
function ask(agent: Agent, port: number, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ host: '127.0.0.1', port, path, agent }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject);
      response.on('end', () =>
        resolve(`${response.statusCode} ${response.headers['content-type']} ${Buffer.concat(chunks).toString('utf8')}`),
      );
    });
    outgoing.on('error', reject).end();
  });
}
