// Going on by the id of an event, on a store in PostgreSQL with a damaged report.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, expect, test } from 'vitest';
import { startPostgres } from '../../../tests/running-postgres.ts';
import { createSignedReports, secondStream } from '../../../tests/signed-reports.ts';
import { openStore } from '../store/open.ts';
import { createEventIds } from './event-id.ts';
import { holdEventStream } from './event-stream.ts';
import { openHub } from './hub.ts';

const { report } = await createSignedReports();
const server = await startPostgres();
const database = server.connect();
afterAll(async () => {
  await database.end();
  await server.stop();
});

const t0 = 1_763_200_000;
const stream = secondStream(1);

test('events: a damaged report is left out, and keeps nobody from going on after it', async () => {
  const writer = await openStore(server.url('events'), 'write');
  await writer.reports.append([0, 1, 2].map((i) => report(stream, t0 + i, t0 + i)));
  await database`UPDATE events.reports SET record = set_byte(record, 20, 255 - get_byte(record, 20))
    WHERE observations = ${(t0 + 1) * 1_000}`;
  const { reports, close } = await openStore(server.url('events'), 'read');
  const eventIds = createEventIds(await reports.lineage());
  const hub = await openHub({ reports, eventIds, feedIds: [stream], onDelivered: () => {}, onTrouble: () => {} });
  const rules = { keepAliveMs: 60_000, bufferBytesMax: 1_000_000 };
  const listener = createServer((_, response) => {
    response.writeHead(200);
    const parts = { reports, hub, eventIds, rules, monotonicMs: () => performance.now(), oldestMs: () => 0 };
    holdEventStream(parts, response, [stream], 0, { messages: 0, bytes: 0, ended: undefined }, () => {});
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = listener.address() as AddressInfo; // it listens on a port
    const stop = new AbortController();
    const answer = await fetch(`http://127.0.0.1:${port}/`, { signal: stop.signal });
    let text = '';
    for await (const chunk of answer.body ?? []) {
      text += Buffer.from(chunk).toString();
      if (text.includes(`id: ${eventIds.encode(3)}\n`)) break;
    }
    expect([...text.matchAll(/^id: (.+)$/gm)].map(([, id]) => eventIds.parse(id))).toEqual([1, 3]);
    stop.abort();
  } finally {
    hub.close();
    listener.closeAllConnections();
    listener.close();
    await close();
    await writer.close();
  }
});
