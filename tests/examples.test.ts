// Runs every example against the real demo, as its first line says, and holds what it prints against the service.
import { readdirSync } from 'node:fs';
import { createClient, decode, verify } from '@sealpost/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Demo, runWithTsx, startDemo } from './running-demo.ts';
import { readText, root } from './source-tree.ts';

let demo: Demo;
let client: ReturnType<typeof createClient>;
let feedId: string;

beforeAll(async () => {
  demo = await startDemo();
  const { SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret } = demo.env;
  client = createClient({ baseUrl: demo.url, userId, secret });
  feedId = (await client.discovery({ status: 'live', baseAsset: 'BTC' })).feeds[0]?.feedId ?? '';
}, 60_000);
afterAll(() => demo?.stop());

test('examples: each says first what it does and how it is run', () => {
  const files = readdirSync(`${root}/examples`).filter((name) => name.endsWith('.ts'));
  expect(files).toEqual(expect.arrayContaining(['latest.ts', 'history-to-csv.ts', 'settlement.ts']));
  for (const name of files) expect(readText(`examples/${name}`), name).toMatch(/^\/\/ [A-Z]/);
});

test('examples: latest prints the price of a report that is stored', async () => {
  const printed = await runWithTsx('examples/latest.ts', demo.env);
  const [, id, price, at] = /^(0x[0-9a-f]{64}) (\S+) at (\S+)$/m.exec(printed) ?? [];
  expect(id).toBe(feedId);
  const { report } = await client.at(feedId, Date.parse(at ?? '') / 1_000);
  expect(decode(report).priceText).toBe(price);
});

test('examples: history to CSV has a line for every report of the span', async () => {
  const [head, ...lines] = (await runWithTsx('examples/history-to-csv.ts', demo.env)).trim().split('\n');
  expect(head).toBe('validFrom,observed,price,bid,ask');
  const seconds = lines.map((line) => Number(line.split(',')[1]));
  const [from = 0, to = 0] = [seconds[0], seconds.at(-1)];
  expect(to - from).toBeGreaterThan(50);
  const expected: string[] = [];
  for await (const { reports } of client.pages(feedId, { from, to }))
    expected.push(...reports.map((report) => `${report.observationsTimestamp},${decode(report).priceText}`));
  expect(lines.map((line) => line.split(',').slice(1, 3).join(','))).toEqual(expected);
});

test('examples: settlement prints the price of the exact second, who signed it, and what a contract takes', async () => {
  const second = (await client.latest(feedId)).report.observationsTimestamp - 30;
  const token = `0x${'ab'.repeat(20)}`;
  const proof = JSON.parse(await runWithTsx('examples/settlement.ts', demo.env, [feedId, String(second), token]));
  const { report } = await client.at(feedId, second);
  const verdict = verify(report, (await client.signers()).signers);
  expect(verdict.ok && verdict.decoded?.priceText).toBe(proof.price);
  expect(verdict.ok && verdict.signers).toEqual(proof.signers);
  expect(proof.contractCall.payload).toBe(report.fullReport);
  expect(proof.contractCall.parameter).toBe(`0x${'0'.repeat(24)}${'ab'.repeat(20)}`);
});

test('examples: settlement refuses a second without a price instead of taking another', async () => {
  const later = Math.floor(Date.now() / 1_000) + 86_400;
  await expect(runWithTsx('examples/settlement.ts', demo.env, [feedId, String(later)])).rejects.toMatchObject({
    stderr: expect.stringContaining("reason: 'not_yet'"),
    code: 1,
  });
});
