// A service with streams in every condition whose reports keep coming, as a deployment to check.
import { performance } from 'node:perf_hooks';
import type { FeedId } from '@sealpost/protocol';
import type { StoredReport } from '@sealpost/server/store/store';
import { createNetwork } from '@sealpost/simulator';
import { undecodedBody, undecodedStream } from '../../../../tests/support/exports/undecoded-bodies.ts';
import { openService, type Service } from '../../../../tests/support/running-api.ts';
import { testStream } from '../../../../tests/support/running-ingest.ts';
import { createSignedReports, millisecondStream, secondStream } from '../../../../tests/support/signed-reports.ts';

const [btc, eth, hidden, gone] = [0xa1, 0xb2, 0xc3, 0xd4].map(secondStream) as [FeedId, FeedId, FeedId, FeedId]; // four were made
const fast = millisecondStream(0xe5);
const layout = 'version 14 with contractMonth as text'; // delivered, not decoded
const unknown = undecodedStream(layout);
export const sampleFeedIds = { btc, eth, hidden, gone, fast } as const;

const streams = [
  testStream(btc, { name: 'BTC/USD-Streams-CexPrice', baseAsset: 'BTC' }),
  testStream(eth, { name: 'ETH/USD-Streams-CexPrice', baseAsset: 'ETH', createdAt: '2025-03-01T00:00:00.000000Z' }),
  testStream(hidden, { name: 'HID/USD-Streams-CexPrice', baseAsset: 'HID', hidden: true }),
  testStream(gone, {
    name: 'OLD/USD-Streams-CexPrice',
    baseAsset: 'OLD',
    status: 'decommissioned',
    decommissionedAt: '2025-06-01T00:00:00.000000Z',
    expectedDecommissionAt: '2025-05-31T00:00:00.000000Z',
  }),
  testStream(fast, { name: 'FAST/USD-Streams-CexPrice', baseAsset: 'FAST' }),
  testStream(unknown, { name: 'NEW/USD-Streams-FuturesPrice', baseAsset: 'NEW' }),
];

export type LiveReports = {
  readonly signerSets: Awaited<ReturnType<typeof createSignedReports>>['signerSets'];
  readonly streams: typeof streams;
  /** The reports of the last seconds. */
  readonly history: readonly StoredReport[];
  /** The reports since the last call. */
  readonly next: () => readonly StoredReport[];
};

export type LiveOptions = {
  /** How long before its end history begins; only two streams have more than a minute. */
  readonly historySeconds?: number;
  /** How long ago history ends: its reports follow at ten times the speed until they catch up. */
  readonly behindSeconds?: number;
};

/** Reports up to now: one a second of each stream, one every three seconds of another, two a second of the one in milliseconds. */
export const createLiveReports = async ({
  historySeconds = 12,
  behindSeconds = 0,
}: LiveOptions = {}): Promise<LiveReports> => {
  const seed = 'conformance';
  const { report, signerSets } = await createSignedReports(seed);
  const { sign } = await createNetwork({ seed });
  const unknownAt = (now: number): StoredReport => {
    const fullReport = sign(undecodedBody(layout, { validFrom: now, observations: now }), now);
    const window = { validFromMs: now * 1_000, observationsMs: now * 1_000 };
    return { feedId: unknown, ...window, fullReport: Buffer.from(fullReport.slice(2), 'hex') };
  };
  const half = (now: number) => [
    report(fast, now * 1_000, now * 1_000 + 499),
    report(fast, now * 1_000 + 500, now * 1_000 + 999),
  ];
  const two = (now: number): readonly StoredReport[] => [
    report(btc, now, now),
    ...(now % 3 === 0 ? [report(eth, now - 2, now)] : []),
  ];
  const at = (now: number): readonly StoredReport[] => [
    ...two(now),
    report(hidden, now, now),
    unknownAt(now),
    ...half(now),
  ];
  const startMs = Date.now();
  const start = Math.floor(startMs / 1_000) - behindSeconds;
  const now = (): number => {
    const sinceMs = Date.now() - startMs;
    return Math.floor((startMs + Math.min(sinceMs, 10 * sinceMs - behindSeconds * 1_000)) / 1_000);
  };
  let last = start;
  return {
    signerSets,
    streams,
    history: Array.from({ length: historySeconds }, (_, i) =>
      (i < historySeconds - 60 ? two : at)(start - historySeconds + 1 + i),
    ).flat(),
    next: () => {
      const second = now();
      const reports = Array.from({ length: second - last }, (_, i) => at(last + 1 + i)).flat();
      last = second;
      return reports;
    },
  };
};

export type LiveSample = {
  readonly url: string;
  readonly env: NodeJS.ProcessEnv;
  readonly service: Service;
  readonly close: () => Promise<void>;
};

/** Opens the service and feeds it until it is closed. */
export const openLiveSample = async (options: LiveOptions = {}): Promise<LiveSample> => {
  const reports = await createLiveReports(options);
  const rules = { origins: ['001', '002'], keepAliveMs: 1_000 };
  const service = await openService(
    reports.streams,
    reports.signerSets,
    () => Date.now(),
    rules,
    () => performance.now(),
  );
  await service.append(reports.history);
  const { userId, secret } = await service.addAccount(['public', `feed:${hidden}`]);
  let feeding: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    feeding = feeding.then(async () => {
      const due = reports.next();
      if (due.length > 0) await service.append(due);
    });
  }, 100);
  return {
    url: service.url,
    env: { SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret },
    service,
    close: async () => {
      clearInterval(timer);
      await feeding;
      await service.close();
    },
  };
};
