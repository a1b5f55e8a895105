// What a mirror reads again: an open range, and reports that were rejected because their signer set was registered while they were on their way. The
// target is a real store; the source is a list of reports in pages of two, so that a test decides what is sent when.
import type { Client } from '@sealpost/client';
import { type FeedId, type ReportJson, toReportJson } from '@sealpost/protocol';
import { resolveSettings } from '@sealpost/server/config/config';
import { resumeMirror } from '@sealpost/server/ingest/mirror';
import type { LineResult } from '@sealpost/server/ingest/report-line';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  openPrivateListener,
  openRunningIngest,
  type RunningIngest,
  registerSigners,
  testStream,
} from '../../../../tests/support/running-ingest.ts';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import type { Session } from '../../session.ts';
import { TransientError } from '../ingest/remote.ts';
import { runMirror } from './mirror.ts';
import { createLocalTarget, type MirrorTarget, openMirrorTarget } from './target.ts';

const [known, late] = await Promise.all([createSignedReports(), createSignedReports('new oracles')]);
const feedId = secondStream(1);
/** A stream that no mirror copies. */
const probed = secondStream(2);
const start = Math.floor(Date.now() / 1_000) - 20_000; // far enough behind for pages
const count = 6;
const lateReport = (stream: FeedId, second: number): ReportJson => {
  const stored = late.report(stream, second, second);
  return toReportJson(stream, stored, `0x${Buffer.from(stored.fullReport).toString('hex')}`);
};
const reports = Array.from({ length: count }, (_, i) => lateReport(feedId, start + i));
const closers: (() => Promise<unknown>)[] = [];
let running: RunningIngest;
let stop: AbortController;

beforeEach(async () => {
  running = await openRunningIngest([testStream(feedId), testStream(probed)], known.signerSets, Date.now);
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort();
  for (const close of closers.splice(0)) await close();
  await running.close();
});

const aborted = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => {
    signal.addEventListener('abort', resolve);
    if (signal.aborted) resolve(undefined);
  });

/** Where the source was read from, in order. */
const starts: number[] = [];

async function* pagesFrom(from: number): AsyncGenerator<{ readonly reports: readonly ReportJson[] }> {
  starts.push(from - start);
  for (let at = from - start; at < count; at += 2) yield { reports: reports.slice(at, at + 2) };
}

const client = {
  pages: (_: string, { from }: { from: number }) => pagesFrom(from),
  stream: (_: readonly string[], { signal }: { signal: AbortSignal }) => ({
    next: async () => {
      await aborted(signal);
      return { done: true, value: undefined };
    },
    close: () => {},
  }),
} as unknown as Client; // what a mirror uses of it

async function* once(page: Uint8Array): AsyncGenerator<Uint8Array> {
  yield page;
}

const resumeHere: MirrorTarget['resume'] = (request) =>
  resumeMirror({ store: running.store, nowMs: Date.now(), retentionDays: 30, actor: 'test' }, request);

const mirrorTo = (target: MirrorTarget) => {
  const catalog = { feeds: async () => [feedId], registers: false, register: async () => [], end: async () => {} };
  const url = new URL('http://source.test');
  const { signal } = stop;
  const parts = { url, client, target, catalog, from: start, restart: false, nowMs: Date.now, signal, tell: () => {} };
  return (async () => {
    for await (const _ of runMirror(parts));
  })();
};

const stored = async (): Promise<readonly number[]> =>
  (await running.store.reports.page(feedId, 0, 100)).reports.map(
    ({ observationsMs }) => observationsMs / 1_000 - start,
  );

const all = [0, 1, 2, 3, 4, 5];

test('mirror: an open range is read on after an interruption, and again from its beginning by a mirror that was restarted', async () => {
  await registerSigners(running.store, late.signerSets);
  await running.store.reports.append([late.report(feedId, start + count, start + count)]);
  const target = createLocalTarget({ ...running.store, close: async () => {} }, session, values);
  closers.push(target.close);
  const failures = [new TransientError('The connection was lost.', ''), new Error('killed')];
  /** Page by page; fails after the first page of each session, as long as there are failures. */
  const interrupted: MirrorTarget = {
    ...target,
    send: async function* (lines, signal) {
      for await (const page of lines) {
        yield* target.send(once(page), signal);
        const failure = failures.shift();
        if (failure !== undefined) throw failure;
      }
    },
  };
  await expect(mirrorTo(interrupted)).rejects.toThrow('killed');
  const again = mirrorTo(interrupted);
  await expect.poll(stored, { timeout: 5_000 }).toEqual([...all, count]);
  expect(starts).toEqual([0, 2, 0]);
  const open = async () => (await running.store.admin.list('mirror')).flatMap((record) => record.open);
  await expect.poll(open, { timeout: 5_000 }).toEqual([]);
  stop.abort();
  await again;
});

const { values, ...resolved } = resolveSettings({
  flags: { network: 'testnet' },
  env: { SEALPOST_INGEST_TOKEN: 'a-token-of-the-test' },
  file: undefined,
});
const session = { nowMs: Date.now, actor: () => 'test' };

const targets: Readonly<Record<string, () => Promise<MirrorTarget>>> = {
  'a store of this machine': async () => {
    const target = createLocalTarget({ ...running.store, close: async () => {} }, session, values);
    closers.push(target.close);
    return target;
  },
  'a private listener': async () => {
    const resume = (request: Parameters<typeof resumeHere>[0]) => resumeHere(request, stop.signal);
    const listener = await openPrivateListener(running.ingest, 'a-token-of-the-test', { resume });
    closers.push(() => listener.close(0));
    return openMirrorTarget(session as Session, { values, ...resolved }, { to: listener.url }); // what it uses of one
  },
};

/**
 * Sends as a session with three pages in flight whose process is killed before it learns of any result. The signer set is registered after the second page was
 * rejected; reports of another stream show when it counts. Returns the codes of the copied stream.
 */
const sendUntilKilled = async (target: MirrorTarget, pages: AsyncIterable<Uint8Array>): Promise<readonly unknown[]> => {
  const results: LineResult[] = [];
  let onResult = (): void => {};
  const isKnown = async (count: number): Promise<void> => {
    while (results.length < count)
      await new Promise<void>((resolve) => {
        onResult = resolve;
      });
  };
  const lines = async function* () {
    let page = 0;
    for await (const bytes of pages) {
      page += 1;
      if (page === 3) {
        await isKnown(4);
        await registerSigners(running.store, late.signerSets);
        for (let second = start; results.at(-1)?.result !== 'stored'; second += 1) {
          const before = results.length;
          yield Buffer.from(`${JSON.stringify(lateReport(probed, second))}\n`);
          await isKnown(before + 1);
        }
      }
      yield bytes;
      if (page === 3) return;
    }
  };
  for await (const batch of target.send(lines(), new AbortController().signal)) {
    results.push(...batch);
    onResult();
  }
  return [...results.slice(0, 4), ...results.slice(-2)].map(({ code }) => code); // others are of the other stream
};

test.each(Object.keys(targets))(
  'mirror: one that is killed before it learns that reports were rejected resumes at the first of them (%s)',
  async (name) => {
    const target = await (targets[name] as () => Promise<MirrorTarget>)(); // one of them
    let codes: readonly unknown[] = [];
    const killed = mirrorTo({
      ...target,
      send: (lines) => ({
        [Symbol.asyncIterator]: () => ({
          next: async () => {
            codes = await sendUntilKilled(target, lines);
            throw new Error('killed');
          },
        }),
      }),
    });
    await expect(killed).rejects.toThrow('killed');
    const unknown = 'unknown_config_digest';
    expect.soft(codes).toEqual([unknown, unknown, unknown, unknown, 'held_back', 'held_back']);
    expect.soft(await stored()).toEqual([]);
    const again = mirrorTo(target);
    await expect.poll(stored, { timeout: 5_000 }).toEqual(all);
    stop.abort();
    await again;
    expect((await running.store.quarantine.list(100)).filter(({ code }) => code === 'held_back')).toEqual([]);
  },
);
