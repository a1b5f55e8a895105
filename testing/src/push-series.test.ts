import { decode } from '@sealpost/client';
import { expect, test } from 'vitest';
import type { Sandbox } from './index.ts';
import { at, createStart, t0 } from './started.fixture.ts';

const start = createStart();
const windowOf = ({ validFromTimestamp, observationsTimestamp }: Awaited<ReturnType<Sandbox['push']>>) => [
  validFromTimestamp - t0,
  observationsTimestamp - t0,
];

test('sandbox: a series is pushed at its times, from CSV text, a file or rows', async () => {
  const { pushSeries, push, client, now } = await start({ streams: ['ETH/USD', 'BTC/USD'], at });
  const csv = 'time,stream,price,bid\n0s,ETH/USD,4200.000000000000000001,\n5s,BTC/USD,90000,89999\n3s,ETH/USD,4100,\n';
  const reports = await pushSeries(csv);
  expect(reports.map(windowOf)).toEqual([
    [0, 0],
    [1, 3],
    [5, 5],
  ]);
  expect(decode((await client.at('ETH/USD', t0)).report).price).toBe(4_200_000000000000000001n);
  expect(decode((await client.latest('BTC/USD')).report).bid).toBe(89_999n * 10n ** 18n);
  expect(now()).toEqual(new Date((t0 + 5) * 1_000));
  const rows = [{ time: '1s', stream: 'ETH/USD', price: 5n * 10n ** 18n }];
  expect((await pushSeries(rows)).map(windowOf)).toEqual([[4, 6]]);
  const file = new URL(`data:,${encodeURIComponent('time,stream,price')}`);
  await expect(pushSeries(file)).rejects.toThrow(); // not a file
  const before = await push('ETH/USD', 6);
  await expect(pushSeries('time,stream,price\n1s,ETH/USD,1\n2s,DOGE/USD,1\n')).rejects.toMatchObject({
    argument: 'line 3: stream',
    message: expect.stringMatching(/^line 3: No stream is named "DOGE\/USD"/),
  });
  expect((await client.latest('ETH/USD')).report).toEqual(before); // nothing of it was pushed
  await expect(pushSeries(`time,stream,price\n${t0},ETH/USD,1\n`)).rejects.toThrow(/^line 2: The report of ETH/);
});
