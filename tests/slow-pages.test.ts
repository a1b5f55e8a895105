// Pages are rendered into memory that is used again: those of clients that do not read stay as they are while other pages are made around them.
import { connect, type Socket } from 'node:net';
import { type FeedId, signRequest, toReportJson } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { benchStreams, firstSecond, rekeyedReports } from '../bench/rekeyed-reports.ts';
import type { StoredReport } from '../server/src/store/store.ts';
import { head, splitAnswers, toLines } from './support/raw-http.ts';
import { type Credentials, openService, type Service } from './support/running-api.ts';
import { testStream } from './support/running-ingest.ts';
import { createSignedReports } from './support/signed-reports.ts';

/** Of each of 24 streams: 39 MB as JSON, three times the memory for rendered pages. */
const seconds = 1_000;
const nowMs = (firstSecond + seconds) * 1_000;
/** Some 800 KB, most of a slab. */
const limit = 480;
const slowClients = 8;
const pagesOfEach = 10;
const otherPages = 60;

let service: Service;
const texts = new Map<FeedId, string[]>(benchStreams.map((feedId) => [feedId, []]));

beforeAll(async () => {
  const { signerSets } = await createSignedReports();
  service = await openService(
    benchStreams.map((feedId) => testStream(feedId)),
    signerSets,
    () => nowMs,
  );
  let batch: StoredReport[] = [];
  for (const reports of rekeyedReports(firstSecond, seconds)) {
    for (const { feedId, fullReport, ...window } of reports)
      texts
        .get(feedId)
        ?.push(JSON.stringify(toReportJson(feedId, window, `0x${Buffer.from(fullReport).toString('hex')}`)));
    batch.push(...reports);
    if (batch.length < 2_400) continue;
    await service.append(batch);
    batch = [];
  }
});
afterAll(() => service?.close());

type Asked = { readonly feedId: FeedId; readonly from: number };

const targetOf = ({ feedId, from }: Asked): string =>
  `/api/v1/reports/page?feedID=${feedId}&startTimestamp=${firstSecond + from}&limit=${limit}`;

const bodyOf = ({ feedId, from }: Asked): string =>
  `{"reports":[${texts
    .get(feedId)
    ?.slice(from, from + limit)
    .join(',')}]}`;

const requestOf = ({ userId, secret }: Credentials, asked: Asked, ...lines: readonly string[]): string => {
  const target = targetOf(asked);
  const auth = signRequest({ method: 'GET', target, userId, timestampMs: nowMs }, secret);
  return head(`GET ${target} HTTP/1.1`, 'Host: a', ...toLines(auth), ...lines);
};

/** Asks for pages at once on one connection, and reads only when told to. */
const askAll = (account: Credentials, pages: readonly Asked[]) => {
  const socket: Socket = connect(Number(new URL(service.url).port), '127.0.0.1').pause();
  const requests = pages.map((page, i) =>
    requestOf(account, page, ...(i === pages.length - 1 ? ['Connection: close'] : [])),
  );
  socket.write(requests.join(''));
  const chunks: Buffer[] = [];
  return {
    /** Takes what one read gives: a client that takes nothing for ten seconds is cut. */
    readSome: (): void => {
      const chunk: Buffer | null = socket.read();
      if (chunk !== null) chunks.push(chunk);
    },
    readAll: async (): Promise<readonly string[]> => {
      for await (const chunk of socket) chunks.push(chunk as Buffer); // no encoding is set
      return splitAnswers(Buffer.concat(chunks).toString('latin1')).answers.map(({ body }) => body);
    },
  };
};

/** Bodies are compared one by one: a difference of megabytes is not to be printed. */
const expectSame = (bodies: readonly string[], pages: readonly Asked[]): void => {
  expect(bodies.length).toBe(pages.length);
  const wrong = pages.filter((page, i) => bodies[i] !== bodyOf(page));
  expect(wrong).toEqual([]);
};

test('pages: clients that read late get every byte of ten pages each, while 60 other pages are made in the same memory', async () => {
  const slow = await Promise.all(
    benchStreams.slice(0, slowClients).map(async (feedId, client) => {
      const pages = Array.from({ length: pagesOfEach }, (_, i): Asked => ({ feedId, from: client + i * 50 }));
      return { pages, client: askAll(await service.addAccount(['public']), pages) };
    }),
  );
  const reader = await service.addAccount(['public']);
  const others = benchStreams.slice(slowClients);
  let readMs = performance.now();
  for (let i = 0; i < otherPages; i++) {
    const asked: Asked = { feedId: others[i % others.length] as FeedId, from: (i * 131) % (seconds - limit) }; // within bounds
    expectSame(await askAll(reader, [asked]).readAll(), [asked]);
    if (performance.now() - readMs < 3_000) continue; // seldom: they are to be behind at the end, on a busy machine too
    readMs = performance.now();
    for (const { client } of slow) client.readSome();
  }
  const pagesMade = service.events.filter(({ route, status }) => route === 'reportPage' && status === 200).length;
  expect(pagesMade - otherPages).toBeLessThan(slowClients * pagesOfEach); // some wait for clients that do not read
  await Promise.all(slow.map(async ({ pages, client }) => expectSame(await client.readAll(), pages)));
});
