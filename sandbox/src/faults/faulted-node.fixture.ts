// A whole node in this process, in memory, with faults: two accounts, three streams, and clocks that tests set.
import { randomBytes } from 'node:crypto';
import { type FeedId, signRequest } from '@sealpost/protocol';
import { createSecretBox } from '@sealpost/server/access/secrets';
import { resolveSettings } from '@sealpost/server/config/config';
import { openNode } from '@sealpost/server/node/node';
import { createStoreMemory } from '@sealpost/server/store/open';
import type { StoredReport } from '@sealpost/server/store/store';
import { createNetwork } from '@sealpost/simulator';
import type { Credentials } from '../../../tests/support/running-api.ts';
import { act, registerSigners, testStream } from '../../../tests/support/running-ingest.ts';
import { createSignedReports, type SignedReports, secondStream } from '../../../tests/support/signed-reports.ts';
import { createFaults, type Faults, type SignReport } from './faults.ts';

/** The second at which sandbox time begins. */
export const startSecond = 1_763_200_000;

export const [eth, btc, link] = [secondStream(1), secondStream(2), secondStream(3)] as const;

export type FaultedNode = {
  readonly url: string;
  readonly opsUrl: string;
  readonly faults: Faults;
  readonly signed: SignedReports;
  readonly reader: Credentials;
  readonly other: Credentials;
  /** Lines of the log. */
  readonly logged: readonly string[];
  /** Sandbox time. */
  readonly clock: { ms: number };
  readonly append: (...reports: readonly StoredReport[]) => Promise<void>;
  /** A signed GET, on a connection of its own. */
  readonly get: (target: string, who?: Credentials, headers?: Readonly<Record<string, string>>) => Promise<Response>;
  /** Requests that are not answered yet. */
  readonly activeRequests: () => Promise<number>;
  readonly stop: () => Promise<void>;
};

const seed = 'faults';

/** Opens it with one report of each stream, a second before sandbox time begins. */
export const openFaultedNode = async (
  flags: Readonly<Record<string, string>> = {},
  signBy?: SignReport,
): Promise<FaultedNode> => {
  const key = randomBytes(32);
  const clock = { ms: startSecond * 1_000 };
  const { sign } = await createNetwork({ seed });
  const signed = await createSignedReports(seed);
  const faults = createFaults({ seed, nowMs: () => clock.ms, sign: signBy ?? sign });
  const { values } = resolveSettings({
    flags: {
      ...{ store: 'memory:', listen: '127.0.0.1:0', opsListen: '127.0.0.1:0', logLevel: 'info', explorer: 'off' },
      ...{ requestsPerSecond: '0', publicRequestsPerSecond: '0', eventLoopLagMaxMs: '60000', verifierThreads: '0' },
      ...{ network: 'testnet', drainMs: '5000', ...flags },
    },
    env: { SEALPOST_KEY: key.toString('hex') },
    file: undefined,
  });
  const hooks = { reportNowMs: () => clock.ms, memory: createStoreMemory(), wrap: faults.wrap };
  const logged: string[] = [];
  const logTo = { write: (line: string) => void logged.push(line) };
  const node = await openNode({ settings: values, version: '1.2.3', ingestToken: undefined, logTo, hooks });
  const { store, view } = node.write;
  const names = ['ETH/USD', 'BTC/USD', 'LINK/USD'] as const;
  const streams = [eth, btc, link].map((feedId, i) => testStream(feedId, { name: `${names[i]}-Streams-CexPrice` }));
  const box = createSecretBox(key);
  const [reader, other] = [randomBytes(12), randomBytes(12)].map((bytes) => ({
    userId: crypto.randomUUID(),
    secret: bytes.toString('hex'),
  })) as [Credentials, Credentials]; // one for each
  const accounts = [reader, other].map(({ userId, secret }) => ({
    ...{ userId, name: 'test', createdAt: '2025-01-01T00:00:00.000000Z', disabledAt: null, rateLimits: {} },
    secrets: [
      { id: 'one', sealed: box.seal(userId, secret), createdAt: '2025-01-01T00:00:00.000000Z', revokedAt: null },
    ],
    entitlements: ['public'],
  }));
  await registerSigners(store, signed.signerSets);
  await store.admin.update('stream', [eth, btc, link], () => streams, act);
  const seen = new Promise<void>(
    (resolve) => void view.onReload(() => view.current().accounts.size === 2 && resolve()),
  );
  await store.admin.update('account', [reader.userId, other.userId], () => accounts, act);
  await seen;
  const append = async (...reports: readonly StoredReport[]): Promise<void> => {
    const outcomes = await store.reports.append(reports);
    if (outcomes.some((outcome) => outcome !== 'stored')) throw new Error(`Not stored: ${outcomes}`);
  };
  await append(...[eth, btc, link].map((feedId) => signed.report(feedId, startSecond - 1, startSecond - 1)));
  return {
    url: node.url,
    opsUrl: node.opsUrl,
    faults,
    signed,
    reader,
    other,
    logged,
    clock,
    append,
    get: (target, who = reader, headers = {}) => {
      const auth = signRequest({ method: 'GET', target, userId: who.userId, timestampMs: Date.now() }, who.secret);
      return fetch(`${node.url}${target}`, { headers: { ...auth, ...headers } as Record<string, string> });
    },
    activeRequests: async () => {
      const metrics = await (await fetch(`${node.opsUrl}/metrics`)).text();
      return Number(/^\S*active_requests\S* (\d+)$/m.exec(metrics)?.[1]);
    },
    stop: () => node.stop('test'),
  };
};

export const latest = (feedId: FeedId): string => `/api/v1/reports/latest?feedID=${feedId}`;
export const bulk = (feedIds: readonly FeedId[], timestamp: number): string =>
  `/api/v1/reports/bulk?feedIDs=${feedIds.join(',')}&timestamp=${timestamp}`;
export const page = (feedId: FeedId, from: number, limit = 10): string =>
  `/api/v1/reports/page?feedID=${feedId}&startTimestamp=${from}&limit=${limit}`;
