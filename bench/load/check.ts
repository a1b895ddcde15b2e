/** Whether all hosts give the same answers: a benchmark of wrong ones would be worth nothing. */
import { Agent, request } from 'node:http';
import { CliError, EXIT } from '../../src/errors.ts';

const AT_ONCE = 8;

/** Asks every host for every target. Throws for the first body that differs from the first host's. */
export async function checkAnswers(
  hosts: readonly { readonly name: string; readonly port: number }[],
  targets: readonly string[],
): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const left = [...new Set(targets)];
  const worker = async (): Promise<void> => {
    for (let target = left.pop(); target !== undefined; target = left.pop()) {
      const answers = await Promise.all(hosts.map(({ port }) => ask(agent, port, target ?? '')));
      const odd = answers.findIndex((answer) => comparable(answer) !== comparable(answers[0] ?? ''));
      if (odd < 0) continue;
      const details = [0, odd].map((i) => `${hosts[i]?.name}: ${answers[i]?.slice(0, 1000)}`);
      throw new CliError(`the hosts answer ${target} differently`, EXIT.verificationFailed, details);
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  } finally {
    agent.destroy();
  }
}

/** The service that used to answer gives no total for a window past the end of a list. */
const comparable = (answer: string): string => answer.replace(/"total":[0-9]+,"results":\[\]\}$/, '"results":[]}');

/** Status, type and body of an answer. */
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
