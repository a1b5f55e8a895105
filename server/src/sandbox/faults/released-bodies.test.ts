// Bodies in memory that is used again are released under every fault: a sandbox that keeps them would run out of such memory.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createRateLimiter } from '../../access/rate-limit.ts';
import type { Answer } from '../../http/answer.ts';
import { createGate } from '../../http/gate.ts';
import { createPipeline } from '../../http/pipeline.ts';
import { type HttpListener, openHttpServer } from '../../http/server.ts';
import { createAddressSet } from '../../runtime/ip-address.ts';
import { createFaults } from './faults.ts';

const unused = {} as never; // no request gets as far
const faults = createFaults({ seed: 'released', nowMs: Date.now });
const released: string[] = [];
const made: string[] = [];
const responses: ServerResponse[] = [];

/** Answers with a body that is to be released. */
const answer = (): Answer => {
  const name = `body ${made.length}`;
  made.push(name);
  return {
    status: 200,
    body: Buffer.from(`{"${name}":1}`),
    cacheControl: 'no-store',
    release: () => released.push(name),
  };
};

let listener: HttpListener;
beforeAll(async () => {
  const rules = {
    ...{ requestsPerSecond: 0, anonymousRequestsPerSecond: 0, publicRequestsPerSecond: 0, failuresPerSecond: 0 },
    trustedProxies: createAddressSet([]),
    origins: [],
  };
  const [accounts, addresses] = [createRateLimiter(10), createRateLimiter(10)];
  const monotonicMs = () => 0;
  const { intercept } = faults.attach({
    reports: unused,
    view: { current: () => ({ streams: new Map() }) as never }, // no fault here asks for more
    monotonicMs,
  });
  const parts = { authenticator: unused, useSignature: unused, readableOf: unused };
  const { handle } = createPipeline({
    handlers: { time: async () => answer() } as never, // no other is asked for
    gate: createGate({ ...parts, accounts, addresses, rules, monotonicMs }),
    readQuery: () => ({}) as never, // this route has none
    contextOf: () => unused,
    nowMs: Date.now,
    reportNowMs: Date.now,
    monotonicMs,
    newRequestId: () => 'id',
    isDraining: () => false,
    load: { begin: () => 0 },
    isTls: false,
    observe: () => {},
    intercept,
  });
  const noted: typeof handle = (request, response, upgrade) => {
    responses.push(response);
    handle(request, response, upgrade);
  };
  listener = await openHttpServer({ host: '127.0.0.1', port: 0 }, noted, () => 'id');
});
afterAll(() => listener?.close(0));
afterEach(() => {
  faults.clear();
  for (const list of [made, released, responses]) list.length = 0;
});

const get = async () => (await fetch(`${listener.url}/time`)).text();

/** Other answers are sent, which is when those before are looked at. */
const sendOthers = async (): Promise<void> => {
  faults.clear();
  for (let i = 0; i < 4; i++) await get();
};

test.each([[{ kind: 'truncate', bytes: 3 }], [{ kind: 'slow', bytesPerSecond: 1_000_000 }]] as const)(
  'a body that is sent in another way is released once it is over: %j',
  async (fault) => {
    faults.add(fault);
    await get().catch(() => 'cut');
    await sendOthers();
    expect(released).toContain('body 0');
    expect(new Set(released).size).toBe(released.length);
  },
);

test('a body that was made for a client that left while it was late is released', async () => {
  faults.add({ kind: 'latency', delay: '60s' });
  const client = connect(Number(new URL(listener.url).port), '127.0.0.1');
  client.write('GET /time HTTP/1.1\r\nHost: a\r\n\r\n');
  while (made.length === 0) await new Promise((resolve) => setImmediate(resolve));
  expect(released).toEqual([]);
  const closed = once(responses[0] as ServerResponse, 'close'); // the only request
  client.destroy();
  await closed;
  await sendOthers();
  expect(released).toContain('body 0');
});

test('a body that is sent as it is, but late, is released once', async () => {
  faults.add({ kind: 'latency', delay: '1ms' });
  expect(await get()).toBe('{"body 0":1}');
  await sendOthers();
  expect(released.filter((name) => name === 'body 0')).toEqual(['body 0']);
});
