/** Checks that all hosts give the same answers, because wrong answers would make the benchmark worthless. */
import { Agent } from 'node:http';
import { inParallel } from '../../src/atOnce.ts';
import { CliError, EXIT } from '../../src/errors.ts';
import { sendTo } from '../../test/support/server.ts';

/** Number of parallel requests per host. */
const AT_ONCE = 8;

interface Asked {
  readonly name: string;
  readonly port: number;
  /**
   * True for the service that the hosts are compared with (bench/peers/service.mjs). It returns total 0 past the end of a list, as Hiro's
   * server did.
   */
  readonly isPeer: boolean;
}

/** Requests every target from every host. Throws at the first answer that differs from the answer of the last host. */
export async function checkAnswers(hosts: readonly Asked[], targets: readonly string[]): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const ask = async ({ port }: Asked, target: string) => {
    const { status, headers, body } = await sendTo(port, agent)('GET', target);
    return `${status} ${headers['content-type']} ${body}`;
  };
  const check = async (target: string) => {
    const answers = await Promise.all(hosts.map((host) => ask(host, target)));
    const last = answers.at(-1) ?? '';
    const odd = answers.findIndex((answer, i) => answer !== (hosts[i]?.isPeer === true ? withoutLostTotal(last) : last));
    if (odd < 0) return;
    const details = [odd, hosts.length - 1].map(
      (i) => `${hosts[i]?.name}: ${around(answers[i] ?? '', firstDifference(answers[odd] ?? '', last))}`,
    );
    throw new CliError(`hosts give different answers to ${target}`, EXIT.verificationFailed, details);
  };
  await inParallel(new Set(targets), AT_ONCE, check).finally(() => agent.destroy());
}

const withoutLostTotal = (answer: string): string => answer.replace(/"total":[0-9]+,"results":\[\]\}$/, '"total":0,"results":[]}');

function firstDifference(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  return at;
}

const around = (text: string, at: number): string => `${at > 100 ? '…' : ''}${text.slice(Math.max(0, at - 100), at + 100)}`;
