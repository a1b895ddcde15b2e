/**
 * `node service.mjs <database URL> <port> <port with ETags>`: a fast version of Hiro's server. It uses Fastify with
 * compiled schemas, and a pool of connections with prepared statements. On the second port it also sends ETags like
 * Hiro's server, for which it queries the newest block at each request.
 */
import Fastify from 'fastify';
import postgres from 'postgres';

const sql = postgres(process.argv[2], { max: 10, onnotice: () => {} });

/** Queries the rows of a window. Each row has the total of the list, as in Hiro's server. */
const rowsOf = (filter, offset, limit) => sql`
  SELECT l.rune_id, l.block_hash, l.block_height, l.tx_index, l.tx_id, l.output, l.address, l.receiver_address, l.amount, l.operation, l.timestamp,
    r.name, r.number, r.spaced_name, r.divisibility, COUNT(*) OVER() AS total
  FROM ledger AS l INNER JOIN runes AS r ON r.id = l.rune_id
  WHERE ${filter}
  ORDER BY l.block_height DESC, l.tx_index DESC, l.event_index DESC
  OFFSET ${offset} LIMIT ${limit}`;

/** Converts an integer number of base units to a decimal number. */
function decimal(units, divisibility) {
  if (divisibility === 0) return units;
  const digits = units.padStart(divisibility + 1, '0');
  return `${digits.slice(0, -divisibility)}.${digits.slice(-divisibility)}`;
}

/** Makes the Activity of a row. Properties that are undefined are omitted from the answer. */
const activityOf = (row) => ({
  rune: { id: row.rune_id, number: Number(row.number), name: row.name, spaced_name: row.spaced_name },
  operation: row.operation,
  location: {
    block_hash: row.block_hash,
    block_height: Number(row.block_height),
    tx_id: row.tx_id,
    tx_index: Number(row.tx_index),
    timestamp: Number(row.timestamp),
    vout: row.output === null ? undefined : Number(row.output),
    output: row.output === null ? undefined : `${row.tx_id}:${row.output}`,
  },
  address: row.address ?? undefined,
  receiver_address: row.receiver_address ?? undefined,
  amount: row.amount === null ? undefined : decimal(row.amount, row.divisibility),
});

async function answer(filter, { offset, limit }) {
  const rows = await rowsOf(filter, offset, limit);
  return { limit, offset, total: Number(rows[0]?.total ?? 0), results: rows.map(activityOf) };
}

const object = (properties, optional = []) => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
});
const [string, integer] = [{ type: 'string' }, { type: 'integer' }];
const activity = object(
  {
    rune: object({ id: string, number: integer, name: string, spaced_name: string }),
    operation: string,
    location: object(
      { block_hash: string, block_height: integer, tx_id: string, tx_index: integer, timestamp: integer, vout: integer, output: string },
      ['vout', 'output'],
    ),
    address: string,
    receiver_address: string,
    amount: string,
  },
  ['address', 'receiver_address', 'amount'],
);
const window = {
  type: 'object',
  properties: {
    offset: { type: 'integer', minimum: 0, default: 0 },
    limit: { type: 'integer', minimum: 1, maximum: 60, default: 20 },
  },
};
const response = { 200: object({ limit: integer, offset: integer, total: integer, results: { type: 'array', items: activity } }) };
const schema = (name, pattern) => ({ params: object({ [name]: { type: 'string', pattern } }), querystring: window, response });

const HEADERS = { 'access-control-allow-origin': '*', 'cache-control': 'public, no-cache, must-revalidate' };

async function giveEtag(request, reply) {
  const [tip] = await sql`SELECT block_hash AS hash FROM ledger ORDER BY block_height DESC LIMIT 1`;
  const etag = `"${tip.hash}"`;
  if (request.headers['if-none-match'] === etag) return reply.code(304).send();
  reply.header('etag', etag);
}

async function listen(port, hasEtags) {
  const service = Fastify({ logger: false });
  service.addHook('onRequest', async (_request, reply) => {
    reply.headers(HEADERS);
  });
  if (hasEtags) service.addHook('preHandler', giveEtag);
  service.get('/runes/v1/transactions/:tx_id/activity', { schema: schema('tx_id', '^[a-fA-F0-9]{64}$') }, ({ params, query }) =>
    answer(sql`l.tx_id = ${params.tx_id}`, query),
  );
  service.get('/runes/v1/blocks/:block/activity', { schema: schema('block', '^[0-9]+$') }, ({ params, query }) =>
    answer(sql`l.block_height = ${params.block}`, query),
  );
  await service.listen({ host: '127.0.0.1', port });
}

const [withoutEtags, withEtags] = process.argv.slice(3).map(Number);
await listen(withEtags, true);
await listen(withoutEtags, false);
