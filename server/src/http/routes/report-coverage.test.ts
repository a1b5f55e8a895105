// Long requests over real connections whose clients leave.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { signRequest } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { head, toLines } from '../../../../tests/support/raw-http.ts';
import { openService, type Service } from '../../../../tests/support/running-api.ts';
import { testStream } from '../../../../tests/support/running-ingest.ts';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';

const { report, signerSets } = await createSignedReports();
const [feedId, now] = [secondStream(1), 1_763_200_000];

let passedMs = 0;
let service: Service;
beforeAll(async () => {
  service = await openService(
    [testStream(feedId), testStream(secondStream(2))],
    signerSets,
    () => now * 1_000,
    {},
    () => performance.now() + passedMs,
  );
  const one = report(feedId, now, now);
  const past = Array.from({ length: 6_000 }, (_, i) => {
    const ms = (now - 6_000 + i) * 1_000;
    return { ...one, validFromMs: ms, observationsMs: ms, price: 1n };
  });
  for (let i = 0; i < past.length; i += 2_000) await service.append(past.slice(i, i + 2_000));
});
afterAll(() => service.close());

test.each([
  ['coverage', `/api/v1/reports/coverage?feedID=${feedId}&from=${now - 86_000}&to=${now}`],
  ['candles', `/api/v1/reports/candles?feedID=${feedId}&from=${now - 86_000}&to=${now}&resolution=60`],
  ['page of 1,000', `/api/v1/reports/page?feedID=${feedId}&startTimestamp=${now - 5_000}&limit=1000`],
])('%s: the server stops reading when the client has left, and logs 499', async (_, target) => {
  const { userId, secret } = await service.addAccount(['public']);
  const ask = (): Socket => {
    const signed = signRequest({ method: 'GET', target, userId, timestampMs: now * 1_000 }, secret);
    const socket = connect({ port: Number(new URL(service.url).port), host: '127.0.0.1' });
    socket.write(head(`GET ${target} HTTP/1.1`, 'Host: a', ...toLines(signed)));
    return socket;
  };
  const eventsOf = () => service.events.filter((event) => event.userId === userId);
  // An account's long requests wait for each other: when the first is answered, most of the others have not begun.
  const [first, ...others] = Array.from({ length: 30 }, ask) as [Socket, ...Socket[]];
  await once(first, 'data');
  for (const other of others) other.destroy();
  await expect.poll(() => eventsOf().length).toBe(30);
  first.destroy();
  const gone = eventsOf().filter(({ code }) => code === 'client_gone');
  expect(gone.length).toBeGreaterThan(10);
  expect(gone[0]).toMatchObject({ status: 499, bytes: 0, userId });
});

test('coverage of several streams: by hour, in the order asked for, and late reports once what is kept is old', async () => {
  const reader = await service.addAccount(['public']);
  const [other, from] = [secondStream(2), Math.floor(now / 3_600) * 3_600 - 3_600];
  const ask = async () => {
    const target = `/api/v1/reports/coverage/bulk?feedIDs=${other},${feedId},${other}&from=${from}&to=${now - 1}`;
    const { status, json } = await service.call(target, { as: reader });
    expect(status).toBe(200);
    return json.streams;
  };
  const newestMs = now * 1_000;
  const whole = {
    feedID: feedId,
    newestMs: newestMs - 1_000,
    from: now - 6_000,
    coveredSeconds: 6_000,
    gapCount: 0,
    longestGap: null,
  };
  expect(await ask()).toMatchObject([{ feedID: other, coveredSeconds: 0, hours: [] }, whole]);
  const one = (second: number) => ({ ...report(other, second, second), price: 1n });
  await service.append([one(from), one(from + 1), one(from + 9), one(now)]);
  const [{ hours, ...first }] = await ask();
  expect(first).toEqual({
    feedID: other,
    newestMs,
    from,
    coveredSeconds: 3,
    gapCount: 2,
    longestGap: { from: from + 10, to: now - 1, seconds: now - from - 10 },
  });
  expect(hours).toEqual([
    { timestamp: from, seconds: 3_600, coveredSeconds: 3 },
    { timestamp: from + 3_600, seconds: now - from - 3_600, coveredSeconds: 0 },
  ]);
  await service.append([one(from + 2), one(now - 2)]);
  expect((await ask())[0]).toMatchObject({ coveredSeconds: 4 });
  passedMs += 60_000;
  expect((await ask())[0]).toMatchObject({ coveredSeconds: 5 });
  const tooLong = `/api/v1/reports/coverage/bulk?feedIDs=${feedId}&from=${now - 86_400}&to=${now}`;
  expect((await service.call(tooLong, { as: reader })).json).toMatchObject({ code: 'malformed_argument' });
});
