import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { benchStreams, fill } from '../../../../../bench/rekeyed-reports.ts';
import { openStore } from '../../open.ts';
import type { Store } from '../../store.ts';
import { other, report, stream, t0 } from '../../store-samples.fixture.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-pages-'));
let store: Store;
beforeAll(async () => {
  store = await openStore(`lmdb:${folder}`, 'write');
  await store.reports.append(Array.from({ length: 300 }, (_, i) => report(stream, t0 + i, t0 + i)));
});
afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

type Sent = { readonly reports: readonly { readonly observationsTimestamp: number }[] };
const secondsIn = (body: string): readonly number[] =>
  (JSON.parse(body) as Sent).reports.map(({ observationsTimestamp }) => observationsTimestamp - t0); // our own body

const secondsFrom = (from: number, limit: number): readonly number[] =>
  Array.from({ length: Math.min(limit, 300 - from) }, (_, i) => from + i);

test('rendered pages: bodies stay as they were until they are released, whatever is rendered meanwhile', async () => {
  const held: (() => void)[] = [];
  // Overlapping pages of all lengths, each asked for again, which puts it in one piece: more than memory is kept for.
  for (let i = 0; i < 160; i++) {
    const [from, limit] = [(i * 37) % 290, 50 + ((i * 53) % 150)];
    (await store.reports.renderedPage(stream, t0 + from, limit)).release?.();
    const { json, body, release } = await store.reports.renderedPage(stream, t0 + from, limit);
    const text = () => String(body ?? `{"reports":[${json.join()}]}`);
    const expected = text();
    expect(secondsIn(expected)).toEqual(secondsFrom(from, limit));
    const check = (): void => {
      expect(text() === expected).toBe(true);
      release?.();
    };
    if (i % 3 > 0) check();
    else held.push(check);
    if (held.length > 40) held.shift()?.();
  }
  for (const check of held) check();
});

test('rendered pages: a page whose memory is used for others by now is rendered again', async () => {
  await fill(store, t0, 500, 50);
  const pages = benchStreams.flatMap((feedId) => [0, 250].map((from) => ({ feedId, from })));
  let bytes = 0;
  const ask = async ({ feedId, from }: (typeof pages)[number]): Promise<void> => {
    const { json, body, release } = await store.reports.renderedPage(feedId, t0 + from, 240);
    const text = String(body ?? `{"reports":[${json.join()}]}`);
    expect(secondsIn(text)).toEqual(Array.from({ length: 240 }, (_, i) => from + i));
    bytes += text.length;
    release?.();
  };
  for (const page of pages) await ask(page);
  expect(bytes).toBeGreaterThan(15 * 1024 * 1024); // more than there is memory for
  for (const page of pages) await ask(page);
});

test('rendered pages: a page lies in one piece when nothing of it was rendered before, and when it is asked for again', async () => {
  await store.reports.append(Array.from({ length: 300 }, (_, i) => report(other, t0 + i, t0 + i)));
  const read = async (from: number) => store.reports.renderedPage(other, t0 + from, 150);
  const first = await read(100);
  const again = await read(100);
  expect(secondsIn(String(again.body))).toEqual(secondsFrom(100, 150));
  expect(String(first.body ?? `{"reports":[${first.json.join()}]}`)).toBe(String(again.body));
  for (const { release } of [first, again]) release?.();
});
