// Resuming an event stream by the id of an event: past a damaged report in PostgreSQL, by clients that do not read, several at once.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { startPostgres } from '../../../tests/support/running-postgres.ts';
import { createSignedReports, secondStream } from '../../../tests/support/signed-reports.ts';
import { createLongWork } from '../access/long-work.ts';
import { openStore } from '../store/open.ts';
import type { ReportStore, Store } from '../store/store.ts';
import { createCutOrder } from './cut-order.fixture.ts';
import { createEventIds } from './event-id.ts';
import { holdEventStream } from './event-stream.ts';
import { openLiveDelivery } from './live-delivery.ts';

const { report } = await createSignedReports();
const t0 = 1_763_200_000;
const [stream, busy] = [secondStream(1), secondStream(2)];

/** A listener whose every request resumes after a position as the account that its path names. */
const openEvents = async (store: Store, reports: ReportStore, after: number | undefined) => {
  const eventIds = createEventIds(await reports.lineage());
  const delivery = await openLiveDelivery({
    reports,
    eventIds,
    feedIds: [stream],
    onDelivered: () => {},
    onTrouble: () => {},
  });
  const rules = { keepAliveMs: 60_000, liveBufferBytesMax: 1_000_000 };
  const monotonicMs = () => performance.now();
  const longWork = createLongWork(monotonicMs);
  const parts = { reports, delivery, eventIds, longWork, rules, monotonicMs, oldestMs: () => 0 };
  const responses: ServerResponse[] = [];
  const listener: Server = createServer((request, response) => {
    responses.push(response);
    response.writeHead(200);
    const reader = { userId: request.url ?? '', feedIds: [stream], after };
    holdEventStream(parts, response, reader, { messages: 0, bytes: 0, ended: undefined }, () => {});
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    delivery.close();
    listener.closeAllConnections();
    listener.close();
    await store.close();
  });
  const { port } = listener.address() as AddressInfo; // it listens on a port
  /** The positions of events, until one of them came. */
  const positionsUntil = async (
    account: string,
    last: number,
    onText: (text: string) => void = () => {},
  ): Promise<readonly unknown[]> => {
    const stop = new AbortController();
    const answer = await fetch(`http://127.0.0.1:${port}${account}`, { signal: stop.signal });
    let text = '';
    for await (const chunk of answer.body ?? []) {
      text += Buffer.from(chunk).toString();
      onText(text);
      if (text.includes(`id: ${eventIds.encode(last)}\n`)) break;
    }
    stop.abort();
    return [...text.matchAll(/^id: (.+)$/gm)].map(([, id]) => eventIds.parse(id));
  };
  return { port, responses, positionsUntil };
};

describe('on PostgreSQL', async () => {
  const server = await startPostgres();
  const database = server.connect();
  afterAll(async () => {
    await database.end();
    await server.stop();
  });

  test('events: a damaged report is skipped, and clients continue after it', async () => {
    const writer = await openStore(server.url('events'), 'write');
    await writer.reports.append([0, 1, 2].map((i) => report(stream, t0 + i, t0 + i)));
    await database`UPDATE events.reports SET record = set_byte(record, 20, 255 - get_byte(record, 20))
      WHERE observations = ${(t0 + 1) * 1_000}`;
    await writer.close();
    const store = await openStore(server.url('events'), 'read');
    const { positionsUntil } = await openEvents(store, store.reports, 0);
    expect(await positionsUntil('/a', 3)).toEqual([1, 3]);
  });
});

/** A store in which a stream has a few reports among many of another one, and what was unpacked of it. */
const openBusyStore = async (count: number, every: number) => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-events-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const store = await openStore(`lmdb:${folder}`, 'write');
  // Signing thousands takes longer than the test: the bytes are those of two reports, under many windows.
  const [wanted, unwanted] = [report(stream, t0, t0), report(busy, t0, t0)];
  const batch = Array.from({ length: count }, (_, i) => {
    const [validFromMs, observationsMs] = [(t0 + i) * 1_000, (t0 + i) * 1_000];
    return { ...((i + 1) % every === 0 ? wanted : unwanted), validFromMs, observationsMs };
  });
  for (let i = 0; i < count; i += 500) await store.reports.append(batch.slice(i, i + 500));
  let unpacked = 0;
  const reports: ReportStore = {
    ...store.reports,
    appendedAfter: async (...args) => {
      const next = await store.reports.appendedAfter(...args);
      unpacked += next.reports.length;
      return next;
    },
  };
  return { store, reports, unpacked: () => unpacked };
};

test('events: a resume unpacks the reports of its own streams, and no other', async () => {
  const { store, reports, unpacked } = await openBusyStore(2_000, 100);
  const { positionsUntil } = await openEvents(store, reports, 0);
  expect(await positionsUntil('/a', 2_000)).toEqual(Array.from({ length: 20 }, (_, i) => (i + 1) * 100));
  expect(unpacked()).toBe(20);
});

test('events: a client that does not read is sent a bounded number of bytes, and keeps no other of its account waiting', async () => {
  const { store, reports } = await openBusyStore(6_000, 1);
  const { port, responses, positionsUntil } = await openEvents(store, reports, 0);
  const silent = connect({ port, host: '127.0.0.1' }).pause();
  onTestFinished(() => void silent.destroy());
  silent.write('GET /a HTTP/1.1\r\nHost: a\r\n\r\n');
  await expect.poll(() => responses[0]?.socket?.writableNeedDrain).toBe(true);
  const another = await positionsUntil('/a', 6_000);
  expect(another).toHaveLength(6_000);
  expect(responses[0]?.writableLength).toBeLessThan(1_000_000);
});

test('events: a stream goes on after the store lost what it had sent, and says that some are missed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-events-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const store = await openStore(`lmdb:${folder}`, 'write');
  const at = (second: number) => report(stream, t0 + second, t0 + second);
  const { reports, append, cut } = createCutOrder([1, 2, 3].map(at));
  const { positionsUntil } = await openEvents(store, { ...store.reports, ...reports }, undefined);
  const steps = [() => append([at(4)]), () => cut(1), () => append([at(5)]), () => append([at(6)])];
  let text = '';
  // A step for each event, and one for the comment at the beginning.
  const positions = await positionsUntil('/a', 3, (now) => {
    text = now;
    for (const step of steps.splice(0, now.split('\n\n').length - 1 - (4 - steps.length))) step();
  });
  expect(positions).toEqual([4, 1, 2, 3]);
  expect(text.match(/^event: missed\nid: .+$/gm)).toHaveLength(1);
});
