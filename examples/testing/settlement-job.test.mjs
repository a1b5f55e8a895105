// Tests of the settlement job, with node:test.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { startSandbox } from '@sealpost/sandbox';
import { settle } from './settlement-job.mjs';

const t0 = Date.parse('2026-03-13T14:30:00Z') / 1_000;
let sandbox;
let book;
const trades = [
  { id: 'a', stream: 'ETH/USD', second: t0 },
  { id: 'b', stream: 'ETH/USD', second: t0 + 1 },
];
const run = (client = sandbox.client) => settle(client, trades, book, sandbox.now().getTime() / 1_000);

beforeEach(async () => {
  sandbox = await startSandbox({ streams: ['ETH/USD'], at: '2026-03-13T14:30:00Z' });
  book = new Map();
});
afterEach(() => sandbox.close());

test('settlement job: each trade gets the price of its second, once', async () => {
  await sandbox.push('ETH/USD', '4200.55');
  assert.deepEqual(await run(), { open: ['b'] });
  await sandbox.push('ETH/USD', '4201');
  assert.deepEqual(await run(), { open: [] });
  assert.deepEqual(
    [...book],
    [
      ['a', '4200.55'],
      ['b', '4201'],
    ],
  );
  sandbox.clearRequests();
  await run();
  assert.equal(sandbox.requests.length, 0);
});

test('settlement job: a reset connection and a cut answer are retried', async () => {
  await sandbox.push('ETH/USD', 1);
  await sandbox.push('ETH/USD', 2);
  const faults = [sandbox.fault('reset,count=1,route=reportAt'), sandbox.fault('truncate=20,count=1,route=reportAt')];
  assert.deepEqual(await run(), { open: [] });
  assert.deepEqual([...book.values()], ['1', '2']);
  assert.deepEqual(
    faults.map(({ applied }) => applied),
    [1, 1],
  );
});

test('settlement job: an outage leaves trades open, and they are settled after it', async () => {
  await sandbox.push('ETH/USD', 1);
  await sandbox.push('ETH/USD', 2);
  const outage = sandbox.fault({ kind: 'status', status: 503, route: 'reportAt' });
  assert.deepEqual(await run(sandbox.createClient({ retries: 0 })), { open: ['a', 'b'] });
  outage.clear();
  assert.deepEqual(await run(), { open: [] });
});

test('settlement job: a trade in a gap gets no price, least of all that of another second', async () => {
  await sandbox.push('ETH/USD', 1);
  await sandbox.push('ETH/USD', 3, { at: t0 + 10, validFrom: t0 + 5 });
  assert.deepEqual(await run(), { open: ['b'] });
  await sandbox.advance('5m');
  assert.deepEqual(await run(), { open: [] });
  assert.deepEqual(
    [...book],
    [
      ['a', '1'],
      ['b', 'no price'],
    ],
  );
});
