// The published TypeScript SDK, unmodified, against the real demo: every REST call that it has. What it gets is held against the
// OpenAPI document on the way.
import { createRequire } from 'node:module';
import { decodeFullReport, parseSignerSets, verifyReport } from '@sealpost/protocol';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { joinDemo } from '../demo-host.ts';
import { type CheckingProxy, openCheckingProxy } from '../support/proxies/checking-proxy.ts';
import type { Demo } from '../support/running-demo.ts';

type SdkReport = {
  readonly feedID: string;
  readonly fullReport: string;
  readonly validFromTimestamp: number;
  readonly observationsTimestamp: number;
};
type SdkClient = {
  readonly listFeeds: () => Promise<readonly { readonly feedID: string }[]>;
  readonly getLatestReport: (feedId: string) => Promise<SdkReport>;
  readonly getReportByTimestamp: (feedId: string, timestamp: number) => Promise<SdkReport>;
  readonly getReportsBulk: (feedIds: readonly string[], timestamp: number) => Promise<readonly SdkReport[]>;
  readonly getReportsPage: (feedId: string, startTimestamp: number, limit?: number) => Promise<readonly SdkReport[]>;
};
type SdkModule = { readonly createClient: (config: Record<string, string>) => SdkClient };
const { createClient }: SdkModule = createRequire(import.meta.url)('@chainlink/data-streams-sdk');

let demo: Demo;
let proxy: CheckingProxy;

const clientOf = (secret = demo.secret) =>
  createClient({
    apiKey: demo.userId,
    userSecret: secret,
    endpoint: proxy.url,
    wsEndpoint: proxy.url.replace('http', 'ws'),
  });

beforeAll(async () => {
  demo = await joinDemo();
  proxy = await openCheckingProxy(() => demo.url);
}, 360_000);
afterEach(() => proxy.report());
afterAll(async () => {
  await proxy?.close();
  await demo?.stop();
});

test('published SDK: lists, reads latest, at, bulk and pages from the demo, and what it reads verifies', async () => {
  const client = clientOf();
  const [first, second, third] = demo.feedIds as [string, string, string]; // the demo has more
  expect((await client.listFeeds()).map(({ feedID }) => feedID)).toEqual(
    expect.arrayContaining([first, second, third]),
  );
  const latest = await client.getLatestReport(first);
  const signers = parseSignerSets(await (await fetch(`${proxy.url}/signers.json`)).json());
  expect(verifyReport(decodeFullReport(latest.fullReport), signers).ok).toBe(true);
  const moment = latest.observationsTimestamp - 5;
  expect((await client.getReportByTimestamp(first, moment)).observationsTimestamp).toBe(moment);
  expect((await client.getReportsBulk([third, first, second], moment)).map(({ feedID }) => feedID)).toEqual([
    third,
    first,
    second,
  ]);
  const page = await client.getReportsPage(first, moment - 20, 7);
  expect(page.map(({ observationsTimestamp }) => observationsTimestamp)).toEqual(
    [0, 1, 2, 3, 4, 5, 6].map((i) => moment - 20 + i),
  );
});

test('published SDK: a wrong key and an unknown stream are its authentication error', async () => {
  await expect(clientOf('wrong').listFeeds()).rejects.toThrow(/Authentication failed/);
  await expect(clientOf().getLatestReport(`0x0003${'0'.repeat(60)}`)).rejects.toThrow(
    /does not exist or this account may not read it/,
  );
});

test('demo: is ready by its own probes', async () => {
  await expect.poll(async () => (await fetch(`${demo.opsUrl}/readyz`)).status).toBe(200); // on a busy machine ingest may lag
});
