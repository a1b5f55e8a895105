// A mirror whose source accepts live connections and then ends them with an error for good. Source and target are functions of the test, so that
// it decides what each one does, and counts how often it is asked.
import { type Client, SealpostError, type StreamOptions } from '@sealpost/client';
import type { FeedId, ReportJson } from '@sealpost/protocol';
import type { LineResult } from '@sealpost/server/ingest/report-line';
import { afterEach, expect, test } from 'vitest';
import { secondStream } from '../../../../tests/support/samples.ts';
import { runMirror } from './mirror.ts';
import { type LiveDelivery, readSource } from './source.ts';
import type { MirrorTarget } from './target.ts';

const [a, b] = [secondStream(1), secondStream(2)];
const start = Math.floor(Date.now() / 1_000) - 10;
const missing = () => new SealpostError('stream_not_found', 'No such stream.', { status: 404 });
const report: ReportJson = { feedID: a, validFromTimestamp: start, observationsTimestamp: start, fullReport: '0x' };
const url = new URL('http://source.test');
let stop = new AbortController();
afterEach(() => stop.abort());

type Pages = (feedId: FeedId, signal: AbortSignal) => Promise<readonly ReportJson[]>;

/** Every live connection is accepted, and fails at once. */
const createSource = (readPage: Pages) => {
  const connections: (readonly string[])[] = [];
  const connectedMs: number[] = [];
  const stream = (feedIds: readonly string[], { onState }: StreamOptions) => {
    connections.push(feedIds);
    connectedMs.push(performance.now());
    onState?.({ phase: 'live' });
    return { next: () => Promise.reject(missing()), close: () => {} };
  };
  async function* pages(feedId: FeedId, { signal }: { signal: AbortSignal }) {
    const reports = await readPage(feedId, signal);
    if (reports.length > 0) yield { reports };
  }
  const client = { stream, pages } as unknown as Client; // what a mirror uses of it
  return { client, connections, connectedMs };
};

const startMirror = (client: Client, feedIds: readonly FeedId[], answer: Partial<LineResult> = {}) => {
  stop = new AbortController();
  const told: string[] = [];
  const target: MirrorTarget = {
    resume: async () => feedIds.map((feedId) => ({ feedId, status: 'live', from: start, start, until: null })),
    send: async function* (lines) {
      for await (const chunk of lines) {
        const sent = chunk.toString().split('\n').filter(Boolean);
        yield sent.map((_, i): LineResult => ({ ...stored, line: i + 1, ...answer }));
      }
    },
    administer: () => Promise.reject(new Error('Nothing is registered here.')),
    close: async () => {},
  };
  const catalog = { feeds: async () => feedIds, registers: false, register: async () => [], end: async () => {} };
  const tell = (text: string) => void told.push(text);
  const parts = {
    url,
    client,
    target,
    catalog,
    from: start,
    restart: false,
    nowMs: Date.now,
    signal: stop.signal,
    tell,
  };
  const finished = (async () => {
    for await (const _ of runMirror(parts));
  })();
  finished.catch(() => {});
  return { told, finished };
};

const stored: LineResult = {
  line: 1,
  result: 'stored',
  feedID: a,
  observationsTimestamp: start,
  code: null,
  message: null,
};
const ended = 'warning: source.test: Live delivery ended (No such stream.) Retrying.';

test('mirror: when live delivery ends with an error, pages show which stream is rejected, and the others continue', async () => {
  const source = createSource(async (feedId) => {
    if (feedId === b) throw missing();
    return [];
  });
  const { told } = startMirror(source.client, [a, b]);
  await expect.poll(() => source.connections.length).toBeGreaterThan(1);
  expect(source.connections.slice(0, 2)).toEqual([[a, b], [a]]);
  expect(told.slice(1, 3)).toEqual([
    ended,
    `warning: source.test rejects ${b} (No such stream.) Other streams continue.`,
  ]);
});

test.each([
  ['without a report', []],
  ['with reports that the target has already', [report]],
])(
  'mirror: a live stream that fails again and again %s is retried with growing pauses, and one warning',
  async (_, page) => {
    const source = createSource(async () => page);
    const { told } = startMirror(source.client, [a], { result: 'duplicate' });
    await expect.poll(() => source.connectedMs.length).toBe(3);
    const [first = 0, second = 0, third = 0] = source.connectedMs;
    expect(second - first).toBeGreaterThan(450);
    expect(third - second).toBeGreaterThan(950);
    expect(told.filter((text) => text.startsWith('warning:'))).toEqual([ended]);
  },
);

test('mirror: if every stream is rejected after live delivery ended, the mirror ends with the reason', async () => {
  const source = createSource(() => Promise.reject(missing()));
  await expect(startMirror(source.client, [a, b]).finished).rejects.toMatchObject({ code: 'stream_not_found' });
  expect(source.connections).toEqual([[a, b]]);
});

test('mirror: a rejected stream does not end the mirror while another one waits for the target', async () => {
  let isBlocked = false;
  const source = createSource(async (feedId, signal) => {
    if (feedId === b && isBlocked) throw missing();
    if (feedId === b) await new Promise((resolve) => signal.addEventListener('abort', resolve));
    isBlocked = true;
    return feedId === a ? [report] : [];
  });
  const refusal = { result: 'refused', code: 'unknown_config_digest', message: 'No such set.' } as const;
  const { told, finished } = startMirror(source.client, [a, b], refusal);
  const first = await Promise.race([
    finished.then(
      () => 'ended',
      () => 'failed',
    ),
    expect
      .poll(() => told)
      .toContainEqual(expect.stringContaining(`rejects ${b}`))
      .then(() => 'told'),
  ]);
  expect(first).toBe('told');
});

test('source: a live stream that fails while a full batch is being stored ends after it', async () => {
  let left = 1_000; // reports of one batch
  const fail = () => new Promise((_, reject) => setTimeout(reject, 10, missing()));
  const next = () => (left-- > 0 ? Promise.resolve({ done: false, value: report }) : fail());
  const stream = (_: readonly string[], { onState }: StreamOptions) => {
    onState?.({ phase: 'live' });
    return { next, close: () => {} };
  };
  const live: LiveDelivery = { isRefused: false, ended: undefined };
  const client = { stream } as unknown as Client; // what a source uses of it
  const sleep = async () => {};
  const parts = { client, signal: new AbortController().signal, nowMs: Date.now, sleep, live, warn: () => {} };
  const batches = readSource([{ feedId: a, start, until: null }], parts);
  expect((await batches.next()).value?.reports).toHaveLength(1_000);
  await new Promise((resolve) => setTimeout(resolve, 50)); // the batch is being stored
  expect(await batches.next()).toEqual({ done: true, value: undefined });
  expect(live.ended).toMatchObject({ code: 'stream_not_found' });
});
