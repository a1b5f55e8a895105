// The client against the service in a browser; tests/client/reads.test.ts and stream.test.ts are the same for Node. The page has another origin than
// the API, as pages have.
import { toSignerSetsJson } from '@sealpost/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { StoredReport } from '../../server/src/store/store.ts';
import { bundleForPage, openBrowser, openBrowserTimeoutMs, openSite } from '../support/browser.ts';
import { isFull } from '../support/full-count.ts';
import { type FailingNetwork, openFailingNetwork } from '../support/proxies/failing-network.ts';
import { type Credentials, openService, type Service } from '../support/running-api.ts';
import { testStream } from '../support/running-ingest.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';
import type { Session, SessionOptions } from './session.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests reach into results whose shape is what they test
type Ask = (name: keyof Session, ...args: readonly unknown[]) => Promise<any>;

/** A page that sessions run in. */
type Place = {
  /** Opens another client. */
  readonly open: (options: SessionOptions) => Promise<Ask>;
  /** Everything that was written to the console. */
  readonly console: () => string;
  readonly close: () => Promise<void>;
};

const pageScript = `
  import { askSession, createSession } from './tests/client/session.ts';
  const sessions = [];
  window.openSession = (options) => sessions.push(createSession(options)) - 1;
  window.ask = (index, name, args) => askSession(sessions[index], name, args);
`;

const openChromium = async (): Promise<Place> => {
  const [{ browser, close }, site] = await Promise.all([openBrowser(), bundleForPage(pageScript).then(openSite)]);
  const lines: string[] = [];
  const page = await browser.newPage();
  page.on('console', (message) => void lines.push(message.text()));
  await page.goto(site.url);
  const run = <T>(name: string, ...args: readonly unknown[]): Promise<T> =>
    page.evaluate<T>(`${name}(${args.map((one) => JSON.stringify(one)).join(', ')})`);
  return {
    open: async (options) => {
      const index = await run<number>('openSession', options);
      return async (name, ...args) => JSON.parse(await run<string>('ask', index, name, args));
    },
    console: () => lines.join('\n'),
    close: async () => {
      await close();
      await site.close();
    },
  };
};

const { report, signerSets } = await createSignedReports();
const now = 1_763_200_000;
const [first, second, empty] = [secondStream(1), secondStream(2), secondStream(3)];
const one = 10n ** 18n;
/** The stream under test calls half a second silence. */
const silentMs = isFull ? 10_000 : 2_000;

const shown = ({ feedId, validFromMs, observationsMs, fullReport }: StoredReport) => ({
  feedID: feedId,
  validFromTimestamp: validFromMs / 1_000,
  observationsTimestamp: observationsMs / 1_000,
  fullReport: `0x${Buffer.from(fullReport).toString('hex')}`,
});

/** Every second of a minute of the first stream but for ten, and a long window of the second. */
const stored = [
  ...Array.from({ length: 60 }, (_, i) => i)
    .filter((i) => i < 20 || i >= 30)
    .map((i) => ({ ...report(first, now - 60 + i, now - 60 + i, BigInt(i + 1) * one), price: BigInt(i + 1) * one })),
  report(second, now - 20, now - 5),
];
const of = (feedId: string) => stored.filter((item) => item.feedId === feedId).map(shown);

describe('client in Chromium', () => {
  let place: Place;
  let service: Service;
  let account: Credentials;

  beforeAll(async () => {
    place = await openChromium();
    const streams = [first, second, empty].map((feedId) => testStream(feedId));
    service = await openService(streams, signerSets, () => now * 1_000, { requestsPerSecond: 1_000 });
    account = await service.addAccount(['public']);
    await service.append(stored);
  }, openBrowserTimeoutMs);
  afterAll(async () => {
    await place?.close();
    await service?.close();
  });

  const open = (options: SessionOptions = {}): Promise<Ask> =>
    place.open({ baseUrl: service.url, ...account, clockMs: now * 1_000, ...options });

  test('latest returns the stored report, with request ID, rate limit and server time', async () => {
    const ask = await open();
    const { report: newest, details } = await ask('call', 'latest', first);
    expect(newest).toEqual(of(first).at(-1));
    expect(details).toMatchObject({
      status: 200,
      requestId: expect.any(String),
      rateLimit: { limit: expect.any(Number), remaining: expect.any(Number) },
      serverTimeMs: expect.any(Number),
    });
  });

  test('a report at a second is found by its window, and a miss explains itself', async () => {
    const ask = await open();
    expect((await ask('call', 'at', second, now - 12)).report).toEqual(of(second)[0]);
    expect((await ask('failure', 'at', first, now - 35)).error).toMatchObject({
      code: 'report_not_found',
      status: 404,
      details: {
        reason: 'gap',
        previous: { observationsTimestamp: now - 41 },
        next: { observationsTimestamp: now - 30 },
      },
    });
  });

  test('bulk returns the reports there are, and lists the missing ones', async () => {
    const { reports, missing, details } = await (await open())('call', 'bulk', [second, empty, first], now - 10);
    expect(reports).toEqual([of(second)[0], of(first).find((item) => item.observationsTimestamp === now - 10)]);
    expect(missing).toEqual([{ feedID: empty, reason: 'no_reports' }]);
    expect(details.status).toBe(206);
  });

  test('a page says whether there is more, and pages return the whole range once', async () => {
    const ask = await open();
    expect(await ask('call', 'page', first, now - 60, 5)).toMatchObject({
      reports: of(first).slice(0, 5),
      more: true,
      nextStartTimestamp: now - 55,
    });
    expect(await ask('pages', first, { from: now - 60, limit: 20 })).toEqual({
      sizes: [20, 20, 10],
      reports: of(first),
    });
  });

  test('coverage and candles are those of the store', async () => {
    const ask = await open();
    const span = { from: now - 60, to: now - 1 };
    expect((await ask('call', 'coverage', first, span)).coverage).toMatchObject({
      coveredSeconds: 50,
      gaps: [{ from: now - 40, to: now - 31, seconds: 10 }],
    });
    const { candles } = await ask('call', 'candles', first, { ...span, resolution: 3_600 });
    expect(candles.at(-1)).toMatchObject({ high: String(60n * one), close: String(60n * one) });
  });

  test('without credentials, the catalog and the signers can be read and reports cannot', async () => {
    const ask = await place.open({ baseUrl: service.url });
    const { feeds } = await ask('call', 'discovery', { baseAsset: 'test', status: 'live' });
    expect(feeds.map(({ feedId }: { feedId: string }) => feedId)).toEqual([first, second, empty]);
    expect((await ask('call', 'signers')).signers).toEqual(toSignerSetsJson(signerSets));
    expect((await ask('call', 'time')).serverTimeMs).toBe(now * 1_000);
    expect((await ask('failure', 'latest', first)).error).toMatchObject({ code: 'missing_credentials' });
  });

  test('feeds are those that the account may read', async () => {
    const { feeds } = await (await open())('call', 'feeds');
    expect(feeds).toEqual([first, second, empty].map((feedID) => ({ feedID })));
  });

  test('a report is verified, decoded and made ready for a contract', async () => {
    const feeToken = `0x${'ab'.repeat(20)}`;
    const newest = of(first).at(-1)?.fullReport ?? '';
    const proof = await (await open())('prove', first, feeToken);
    expect(proof.verdict).toMatchObject({ ok: true, decoded: { priceText: '60' } });
    const [set] = signerSets.values();
    expect(set?.addresses).toEqual(expect.arrayContaining(proof.verdict.signers));
    expect(proof.verdict.signers).toHaveLength((set?.f ?? 0) + 1);
    expect(proof.altered).toMatchObject({ ok: false, reason: 'altered_report' });
    expect(proof.moved).toMatchObject({ ok: false, reason: 'mismatched_fields' });
    expect(proof.decoded).toMatchObject({ feedId: first, price: String(60n * one), bid: String(60n * one) });
    expect(proof.argument).toEqual([newest, `0x${'0'.repeat(24)}${'ab'.repeat(20)}`]);
    expect(proof.appended).toHaveLength(1);
    expect(proof.appended[0]).toContain('ab'.repeat(20));
  });

  test('a wrong secret is a typed error with advice, asked once, and printed nowhere', async () => {
    const secret = 'a-secret-that-nobody-may-see';
    const ask = await open({ secret });
    const before = service.events.filter(({ method }) => method === 'GET').length;
    const { error, printed } = await ask('failure', 'latest', first);
    expect(error).toMatchObject({
      code: 'unauthorized',
      status: 401,
      retryable: false,
      advice: 'Check the user ID and secret; the account may be disabled.',
      requestId: expect.any(String),
    });
    expect(service.events.filter(({ method }) => method === 'GET').length - before).toBe(1);
    expect(printed).toContain('SealpostError');
    expect(`${printed}${place.console()}`).not.toContain(secret);
  });

  test('a clock that is far off is corrected with the server’s time, with one warning', async () => {
    const ask = await open({ clockMs: now * 1_000 + 90_000 });
    expect((await ask('call', 'latest', first)).report).toEqual(of(first).at(-1));
    await ask('call', 'latest', second);
    expect(await ask('warnings')).toEqual(['clock_skew']);
  });

  test('a refused connection is a network error with advice, without the secret', async () => {
    const site = await openSite('');
    await site.close();
    const ask = await open({ baseUrl: site.url });
    const { error, printed } = await ask('failure', 'latest', first, { timeoutMs: 20_000 });
    expect(error).toMatchObject({
      code: 'network_error',
      retryable: true,
      advice: expect.stringContaining('base URL'),
    });
    expect(`${printed}${place.console()}`).not.toContain(account.secret);
  });

  describe('live', () => {
    let network: FailingNetwork;
    beforeAll(async () => {
      network = await openFailingNetwork();
    });
    afterAll(() => network?.close());

    /** A stream over Server-Sent Events, which both have, through the network that fails. */
    const openStream = async (options: object) => {
      const { userId, secret, feedId } = network.world;
      const ask = await place.open({ baseUrl: network.proxy.url, userId, secret });
      const live = { transport: 'sse', reconnect: { minMs: 20, maxMs: 200 }, ...options };
      await ask('openStream', [feedId], live);
      const received: unknown[] = [];
      return {
        received,
        receive: async (count: number): Promise<void> => void received.push(...(await ask('receive', count))),
        states: (): Promise<readonly { phase: string; origin?: string }[]> => ask('states'),
        close: () => ask('close'),
      };
    };

    test('reports arrive in order as they come in, from a second of the past on', async () => {
      const from = network.nextSecond();
      await network.ingest(10); // after five seconds without any
      const { received, receive, close } = await openStream({ from: from + 7, transport: 'auto' });
      await receive(8);
      await network.ingest(5);
      await receive(5);
      expect(received).toEqual(await network.storedFrom(from + 7));
      await close();
    });

    test('the server is killed in mid-stream and comes back: every report once, in order', async () => {
      const from = network.nextSecond();
      await network.ingest(20);
      const { received, receive, states, close } = await openStream({ from });
      await network.killInMidStream(receive);
      expect(received).toEqual(await network.storedFrom(from));
      expect((await states()).map(({ phase }) => phase)).toContain('reconnecting');
      await close();
    });

    test(`the network drops packets silently for ${silentMs / 1_000} s: every report once, in order`, async () => {
      const from = network.nextSecond();
      const { received, receive, states, close } = await openStream({ from, silenceMs: 500 });
      await network.ingest(3);
      await receive(3);
      const told = (await states()).length;
      const noticed = () =>
        expect.poll(async () => (await states()).slice(told).map(({ phase }) => phase)).toContain('reconnecting');
      await network.vanish(receive, noticed, silentMs);
      expect(received).toEqual(await network.storedFrom(from));
      await close();
    });

    test('with high availability there is one connection to each origin: one and then the other goes down, every report comes once', async () => {
      const from = network.nextSecond();
      const { received, receive, states, close } = await openStream({ from, ha: true });
      const origins = async () =>
        (await states()).flatMap(({ phase, origin }) => (phase === 'live' && origin !== undefined ? [origin] : []));
      await expect.poll(async () => (await origins()).sort()).toEqual(['001', '002']);
      await network.ingest(20);
      await receive(20);
      await network.takeDownInTurn(receive);
      expect((await states()).map(({ phase }) => phase)).toContain('reconnecting');
      expect(received).toEqual(await network.storedFrom(from));
      await close();
    });

    test('a wrong secret ends a stream with a typed error', async () => {
      const ask = await place.open({ baseUrl: network.proxy.url, userId: network.world.userId, secret: 'wrong' });
      await ask('openStream', [network.world.feedId], {});
      await expect(ask('receive', 1)).rejects.toThrow();
      expect((await ask('states')).at(-1)).toMatchObject({ phase: 'closed', error: { code: 'unauthorized' } });
    });

    test('a WebSocket is refused in words that say what to do instead', async () => {
      const { userId, secret, feedId } = network.world;
      const ask = await place.open({ baseUrl: network.proxy.url, userId, secret });
      await ask('openStream', [feedId], { transport: 'websocket' });
      await expect(ask('receive', 1)).rejects.toThrow('does not work in browsers. Use sse');
    });
  });
});
