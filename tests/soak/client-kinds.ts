// One function for each kind of client: reads by our SDK, by the published one and by bare requests without retries; live reports over
// WebSockets and event streams; bare requests over TLS at the second deployment. Each runs until it is over.
import { Agent, get } from 'node:http';
import { get as getTls, Agent as TlsAgent } from 'node:https';
import { createRequire } from 'node:module';
import { createClient } from '@sealpost/client';
import { signRequest } from '@sealpost/protocol';
import { createRandom, pick } from '../support/random.ts';
import type { Credentials } from '../support/running-api.ts';
import { describeAnswer } from './answers.ts';
import { type Coverage, createCoverage } from './coverage.ts';

export type ClientKind = 'sdk' | 'bare' | 'socket' | 'events' | 'published' | 'published stream' | 'tls';

/** What a client has to do with the others. */
export type Surroundings = {
  readonly url: string;
  readonly tlsUrl: string;
  readonly feedIds: readonly string[];
  readonly credentials: () => Credentials;
  readonly steady: Credentials;
  /** Aborted at the end. */
  readonly over: AbortSignal;
  /** Aborted when the credentials change, and at the end. */
  readonly renewed: () => AbortSignal;
  /** No more is read; live streams go on until the end. */
  readonly isOver: () => boolean;
  readonly pause: () => Promise<void>;
  readonly answered: (kind: ClientKind, status?: number) => void;
  readonly failed: (kind: ClientKind, error: unknown) => void;
  readonly cameLate: () => void;
  /** A reader of live streams begins: what it got is looked at in the end. */
  readonly covers: (kind: ClientKind, feedIds: readonly string[], coverage: Coverage) => void;
};

type PublishedReport = { readonly feedID: string; readonly observationsTimestamp: number };
type SdkStream = {
  readonly on: (event: string, listener: (value: never) => void) => void;
  readonly connect: () => Promise<void>;
  readonly close: () => Promise<void>;
};
type PublishedClient = {
  readonly getLatestReport: (feedId: string) => Promise<unknown>;
  readonly getReportByTimestamp: (feedId: string, timestamp: number) => Promise<unknown>;
  readonly getReportsPage: (feedId: string, start: number, limit: number) => Promise<readonly PublishedReport[]>;
  readonly getReportsBulk: (feedIds: readonly string[], timestamp: number) => Promise<unknown>;
  readonly createStream: (feedIds: readonly string[], options: object) => SdkStream;
};
type PublishedSdk = { readonly createClient: (config: object) => PublishedClient };
const published = createRequire(import.meta.url)('@chainlink/data-streams-sdk') as PublishedSdk; // it has no types

const seconds = (): number => Math.floor(Date.now() / 1_000);
/** Reports are at most this old when all nodes have them, however busy the machine is. */
const settledSeconds = 30;
const bulkStreams = 5;

/** Reads again and again, each time something else. `past` is a second that every stream has a report of. */
const readInTurns = async (
  kind: ClientKind,
  index: number,
  around: Surroundings,
  reads: () => readonly ((feedId: string, past: number) => Promise<unknown>)[],
): Promise<void> => {
  const random = createRandom(index + 1);
  const begun = seconds();
  while (!around.isOver()) {
    const past = seconds() - settledSeconds;
    const all = reads();
    const read = past > begun ? pick(random, all) : all[0];
    await read?.(pick(random, around.feedIds), past)
      .then(() => around.answered(kind))
      .catch((error: unknown) => around.failed(kind, error));
    await around.pause();
  }
};

const runSdk = (index: number, around: Surroundings): Promise<void> => {
  const { url, feedIds } = around;
  const client = createClient({ baseUrl: url, credentials: async () => around.credentials(), onWarning: () => {} });
  return readInTurns('sdk', index, around, () => [
    (feedId) => client.latest(feedId),
    (feedId, past) => client.at(feedId, past),
    (feedId, past) => client.page(feedId, past, 5),
    (_, past) => client.bulk(feedIds.slice(0, bulkStreams), past),
  ]);
};

const publishedClient = ({ url, credentials }: Surroundings): PublishedClient => {
  const { userId, secret } = credentials();
  const wsEndpoint = url.replace('http', 'ws');
  return published.createClient({ apiKey: userId, userSecret: secret, endpoint: url, wsEndpoint });
};

const runPublished = (index: number, around: Surroundings): Promise<void> =>
  readInTurns('published', index, around, () => {
    const client = publishedClient(around); // its secret never changes
    return [
      (feedId) => client.getLatestReport(feedId),
      (feedId, past) => client.getReportByTimestamp(feedId, past),
      (feedId, past) => client.getReportsPage(feedId, past, 5),
      (_, past) => client.getReportsBulk(around.feedIds.slice(0, bulkStreams), past),
    ];
  });

/** One request on a connection that is kept; rejects unless it is answered with 200. */
const askOnce = (around: Surroundings, kind: 'bare' | 'tls', agent: Agent, target: string): Promise<void> => {
  const { userId, secret } = kind === 'tls' ? around.steady : around.credentials();
  const headers = { ...signRequest({ method: 'GET', target, userId, timestampMs: Date.now() }, secret) };
  return new Promise((resolve, reject) => {
    const url = `${kind === 'tls' ? around.tlsUrl : around.url}${target}`;
    const request = (kind === 'tls' ? getTls : get)(url, { headers, agent }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk;
      });
      response.once('error', reject);
      response.once('end', () => {
        around.answered(kind, response.statusCode);
        if (response.statusCode === 200) resolve();
        else reject(new Error(describeAnswer(response.statusCode, body)));
      });
    });
    request.once('error', (error: NodeJS.ErrnoException) => {
      // A connection that was closed for idleness while this was sent: any client tries again.
      if (request.reusedSocket && error.code === 'ECONNRESET')
        askOnce(around, kind, agent, target).then(resolve, reject);
      else reject(error);
    });
    request.setTimeout(30_000, () => request.destroy(new Error('no answer for 30 s')));
  });
};

const runBare =
  (kind: 'bare' | 'tls') =>
  async (index: number, around: Surroundings): Promise<void> => {
    const agent: Agent = kind === 'tls' ? new TlsAgent({ keepAlive: true }) : new Agent({ keepAlive: true });
    const random = createRandom(index + 1);
    while (!around.isOver()) {
      const target = `/api/v1/reports/latest?feedID=${pick(random, around.feedIds)}`;
      await askOnce(around, kind, agent, target).catch((error: unknown) => around.failed(kind, error));
      await around.pause();
    }
    agent.destroy();
  };

const streamsPerReader = 5;

const runStream =
  (kind: 'socket' | 'events') =>
  async (index: number, around: Surroundings): Promise<void> => {
    const { url, feedIds, over } = around;
    const some = feedIds.slice(index % feedIds.length).slice(0, streamsPerReader);
    const coverage = createCoverage();
    around.covers(kind, some, coverage);
    const client = createClient({ baseUrl: url, credentials: async () => around.credentials(), onWarning: () => {} });
    const transport = kind === 'socket' ? 'websocket' : 'sse';
    /** Where each stream resumes. */
    const from = (): Record<string, number> =>
      Object.fromEntries(some.map((feedId) => [feedId, (coverage.newestOf(feedId) ?? seconds()) + 1]));
    for (let isFirst = true; !over.aborted; isFirst = false)
      try {
        const live = client.stream(some, { transport, signal: over, ...(!isFirst && { from: from() }) });
        for await (const { feedID, observationsTimestamp } of live) {
          if (!coverage.add(feedID, observationsTimestamp)) around.cameLate();
          around.answered(kind);
        }
      } catch (error) {
        around.failed(kind, error);
        await around.pause();
      }
  };

/** Reports per page, as many as the API gives. */
const pageLimit = 1_000;

/** What a connection missed is read in pages, as the protocol says of WebSockets. */
const fillGaps = async (around: Surroundings, coverage: Coverage, feedIds: readonly string[]): Promise<void> => {
  while (!around.over.aborted) {
    for (const feedId of feedIds) {
      const [first] = coverage.missingOf(feedId);
      if (first === undefined) continue;
      await publishedClient(around)
        .getReportsPage(feedId, first, pageLimit)
        .then((reports) => {
          for (const { observationsTimestamp } of reports) coverage.fill(feedId, observationsTimestamp);
        })
        .catch((error: unknown) => around.failed('published stream', error));
    }
    await around.pause();
  }
};

const runPublishedStream = async (index: number, around: Surroundings): Promise<void> => {
  const { feedIds, over } = around;
  const some = feedIds.slice(index % feedIds.length).slice(0, streamsPerReader);
  const coverage = createCoverage();
  around.covers('published stream', some, coverage);
  const filling = fillGaps(around, coverage, some);
  while (!over.aborted) {
    const stream = publishedClient(around).createStream(some, { reconnectInterval: 500, maxReconnectAttempts: 50 });
    stream.on('report', ({ feedID, observationsTimestamp }: PublishedReport) => {
      // A node that it connects to anew may be a little behind the one before: duplicates are dropped.
      if (!coverage.add(feedID, observationsTimestamp)) coverage.fill(feedID, observationsTimestamp);
      around.answered('published stream');
    });
    stream.on('error', (error: Error) => around.failed('published stream', error));
    const renewed = around.renewed();
    await stream.connect().catch((error: unknown) => around.failed('published stream', error));
    if (!renewed.aborted) await new Promise((resolve) => renewed.addEventListener('abort', resolve, { once: true }));
    await stream.close();
  }
  await filling;
};

export const clientKinds: Readonly<Record<ClientKind, (index: number, around: Surroundings) => Promise<void>>> = {
  sdk: runSdk,
  bare: runBare('bare'),
  socket: runStream('socket'),
  events: runStream('events'),
  published: runPublished,
  'published stream': runPublishedStream,
  tls: runBare('tls'),
};
