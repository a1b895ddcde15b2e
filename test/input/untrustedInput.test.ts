/** Tests hostile input and hostile servers (SECURITY.md). test/exhaustive/input/badInput.test.ts tests input that is only wrong. */
import { existsSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { shorten } from '../../src/input/inputFindings.ts';
import { failedBuild, filesBelow, temporaryFolder, writeFiles } from '../support/build.ts';
import { run } from '../support/cli.ts';
import { failedPull } from '../support/pull.ts';
import { ndjson, record } from '../support/records.ts';
import { listening } from '../support/server.ts';

describe('a value', () => {
  it('that is a path or SQL is refused, in NDJSON and in CSV', async () => {
    const bad = ['../../../etc/passwd', '/etc/passwd', "'; DROP TABLE records; --", '..%2f..%2fx', '0x../../x', `${'a'.repeat(64)}/../x`];
    const columns = [
      'rune_id',
      'rune_number',
      'rune_name',
      'rune_spaced_name',
      'address',
      'receiver_address',
      'amount',
      'operation',
      'block_hash',
    ];
    const header = [...columns, 'block_height', 'tx_id', 'tx_index', 'vout', 'output', 'timestamp'];
    const fields = ['tx_id', 'block_hash', 'block_height'] as const;
    const records = bad.flatMap((value) => fields.map((field) => record(5, 1, { location: { [field]: value } })));
    const rows = records.map(({ rune, location, ...one }) => {
      const flat: Readonly<Record<string, unknown>> = {
        ...one,
        ...location,
        rune_id: rune.id,
        rune_number: rune.number,
        rune_name: rune.name,
        rune_spaced_name: rune.spaced_name,
      };
      return header.map((name) => `"${String(flat[name] ?? '').replaceAll('"', '""')}"`).join();
    });
    const work = temporaryFolder();
    writeFiles(work, { 'a.ndjson': ndjson(records), 'b.csv': `${[header.join(), ...rows].join('\n')}\n` });
    for (const [name, unit] of [
      ['a.ndjson', 'line'],
      ['b.csv', 'row'],
    ] as const) {
      const error = await failedBuild(join(work, 'out'), { inputs: [join(work, name)] });
      const findings = bad.flatMap((value, i) =>
        fields.map((field, j) => [`/${name} ${unit} ${i * fields.length + j + 1}: `, `${field} ${shorten(value)}`]),
      );
      expect([error.exitCode, error.details.length]).toEqual([2, findings.length]);
      expect(error.details.map((line, i) => findings[i]?.filter((part) => !line.includes(part)))).toEqual(findings.map(() => []));
      expect(existsSync(join(work, 'out'))).toBe(false);
    }
  });
});

describe('a file', () => {
  it('with SQL in its name, or in a flag, is just a name', async () => {
    const work = temporaryFolder();
    const name = "a'); COPY (SELECT 1) TO 'stolen.csv'; --";
    writeFiles(work, { [`in/${name}.ndjson`]: ndjson([record(5, 1)]), 'b.ndjson': ndjson([record(6, 1)]) });
    const flags = ['--input', `in/${name}.ndjson`, '--input', 'b.ndjson', '--out', `out${name}`, '--cache', `cache${name}`];
    const { code, stderr } = await run('build', flags, work);
    expect([code, stderr]).toEqual([0, '']);
    expect(readdirSync(work).sort()).toEqual(['b.ndjson', `cache${name}`, 'in', `out${name}`].sort());
    expect((await run('verify', ['--dir', `out${name}`], work)).code).toBe(0);
    for (const flag of [`--memory-limit=1GB'; --`, `--threads=1; --`, `--layout=files'; --`, `--blocks=1..2'; --`]) {
      expect([flag, (await run('build', [flag, ...flags], work)).code]).toEqual([flag, 1]);
    }
  });
});

describe('an answer to a pull', () => {
  it('that never ends is aborted', async () => {
    const megabyte = Buffer.alloc(1024 * 1024, ' ');
    const server = createServer((_request, response) => {
      const more = () => {
        while (!response.destroyed && response.write(megabyte));
      };
      response.on('drain', more);
      more();
    });
    const host = await listening(server);
    const to = temporaryFolder();
    const error = await failedPull(host.url, to, { timeoutMs: 10_000, retries: 1 });
    expect([error.exitCode, error.message]).toEqual([3, expect.stringContaining('the largest valid answer has 16777216')]);
    expect(filesBelow(to).filter((path) => path.endsWith('json'))).toEqual([]);
    await host.close();
  });
});
