// Whatever a handler waits for throws, rejects or never answers: each call of each route, as a run without faults lists them. The answer is
// 500 or 503 with the general text, the log has the request ID with the cause, and nothing is answered that would not be without the fault.
import { errorTable } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLongWork } from '../../server/src/access/long-work.ts';
import { StoreError } from '../../server/src/store/store.ts';
import { tally } from '../support/full-count.ts';
import { type Credentials, openService, type ReadParts, type Reply, type Service } from '../support/running-api.ts';
import { testStream } from '../support/running-ingest.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';

const { report, signerSets } = await createSignedReports();
const now = 1_763_200_000;
const [full, empty] = [secondStream(1), secondStream(2)];
const both = `${full},${empty}`;
const span = `from=${now - 60}&to=${now}`;
const targets = [
  `/api/v1/reports?feedID=${full}&timestamp=${now - 5}`,
  `/api/v1/reports?feedID=${full}&timestamp=${now - 500}`,
  `/api/v1/reports?feedID=${empty}&timestamp=${now - 5}`,
  `/api/v1/reports/latest?feedID=${full}`,
  `/api/v1/reports/latest?feedID=${empty}`,
  `/api/v1/reports/latest?feedIDs=${both}&missing=true`,
  `/api/v1/reports/bulk?feedIDs=${both}&timestamp=${now - 5}&missing=true`,
  `/api/v1/reports/page?feedID=${full}&startTimestamp=${now - 60}`,
  `/api/v1/reports/page?feedID=${full}&startTimestamp=${now - 60}&limit=1000`,
  `/api/v1/reports/coverage?feedID=${full}&${span}`,
  `/api/v1/reports/coverage/bulk?feedIDs=${both}&${span}`,
  `/api/v1/reports/candles?feedID=${full}&${span}&resolution=60`,
  `/api/v1/reports/candles/bulk?feedIDs=${both}&${span}&resolution=60`,
  '/api/v1/feeds',
  '/api/v1/discovery',
  '/time',
  '/signers.json',
  '/status.json',
  '/openapi.json',
  '/docs',
] as const;

type Fault = { readonly kind: 'throws' | 'rejects' | 'never answers'; readonly error?: Error };
/** The call of a request that fails, counted from its start, and what is called then. */
let plan: { readonly index: number; readonly fault: Fault; readonly hit: () => void } | undefined;
let calls: string[] = [];
let clockMs = 1_000_000;
let longWork = createLongWork(() => clockMs);
let service: Service;
let reader: Credentials;

/** Longer than any route keeps what it read. */
const keptMs = 61_000;
/** These answer at once: there is nothing to reject. */
const atOnce = ['reports.latest', 'reports.newestMs'];

const meet = (name: string, pass: () => unknown): unknown => {
  const index = calls.push(name) - 1;
  if (plan?.index !== index) return pass();
  const { fault, hit } = plan;
  plan = undefined;
  hit();
  if (fault.kind === 'throws') throw fault.error;
  return fault.kind === 'rejects' ? Promise.reject(fault.error) : new Promise(() => {});
};

const between = ({ store, useSignature }: ReadParts): ReadParts => ({
  useSignature,
  store: {
    ...store,
    reports: new Proxy(store.reports, {
      get: (reports, name) => {
        const found = Reflect.get(reports, name);
        return typeof found === 'function'
          ? (...args: readonly unknown[]) => meet(`reports.${String(name)}`, () => Reflect.apply(found, reports, args))
          : found;
      },
    }),
  },
  longWork: {
    run: (...args) => meet('longWork.run', () => longWork.run(...args)) as ReturnType<typeof longWork.run<never>>, // what it passes on
    slice: (work) => meet('longWork.slice', () => longWork.slice(work)) as ReturnType<typeof longWork.slice<never>>, // as above
  },
});

beforeAll(async () => {
  const streams = [testStream(full), testStream(empty)];
  service = await openService(
    streams,
    signerSets,
    () => now * 1_000,
    {},
    () => clockMs,
    between,
  );
  await service.append(Array.from({ length: 20 }, (_, i) => report(full, now - 20 + i, now - 20 + i)));
  reader = await service.addAccount(['public']);
});
afterAll(() => service.close());

const ask = async (target: string, as: Credentials | null = reader): Promise<Reply> => service.call(target, { as });

type Place = { readonly target: string; readonly index: number; readonly name: string };

/** What each request waits for, found by asking without faults. */
const listPlaces = async (): Promise<readonly Place[]> => {
  const places: Place[] = [];
  for (const target of targets) {
    calls = [];
    clockMs += keptMs;
    expect((await ask(target)).status).toBeLessThan(500);
    places.push(...calls.map((name, index) => ({ target, index, name })));
  }
  return places;
};

const marker = '/srv/private/where-it-broke';
const faultsAt = ({ name }: Place): readonly Fault[] => [
  { kind: 'throws', error: new Error(marker) },
  { kind: 'throws', error: new StoreError('store_unavailable', marker) },
  ...(atOnce.includes(name)
    ? []
    : ([
        { kind: 'rejects', error: new Error(marker) },
        { kind: 'rejects', error: new StoreError('store_unavailable', marker) },
        { kind: 'never answers' },
      ] as const)),
];

/** Asks with a fault in place; resolves when the request met it, or was answered without, with the answer that will come. */
const inject = async ({ target, index }: Place, fault: Fault): Promise<{ readonly reply: Promise<Reply> }> => {
  calls = [];
  clockMs += keptMs;
  longWork = createLongWork(() => clockMs); // work that never ends would hold up the next
  const met = new Promise<void>((resolve) => {
    plan = { index, fault, hit: resolve };
  });
  const reply = ask(target);
  await Promise.race([met, reply]);
  return { reply };
};

/** What is wrong with an answer, in words; nothing if it is as promised. */
const wrongOf = (target: string, reply: Reply, { kind, error }: Fault): readonly string[] => {
  const { status, text, json, headers } = reply;
  // It is there to say what does not work.
  if (target === '/status.json') return json.reasons?.[0] === 'store: it does not answer' ? [] : [text];
  const code = error instanceof StoreError || kind === 'never answers' ? 'store_unavailable' : 'internal_error';
  const general = { error: errorTable[code].message, message: errorTable[code].message, code };
  const event = service.events.find(({ requestId }) => requestId === headers['x-request-id']);
  const cause = event?.error as Error | undefined;
  const isLogged = error === undefined ? /did not answer within/.test(cause?.message ?? '') : cause === error;
  return [
    ...(status === errorTable[code].status ? [] : [`status ${status}`]),
    ...(JSON.stringify(json) === JSON.stringify({ ...general, requestId: event?.requestId }) ? [] : [`body ${text}`]),
    ...(text.includes('private') || /\bat .*:\d+/.test(text) ? ['tells where it broke'] : []),
    ...(isLogged ? [] : ['its cause is not in the log']),
    ...(status !== 503 || headers['retry-after'] !== undefined ? [] : ['no Retry-After']),
  ];
};

test('injected faults: every call of every route throws, rejects or never answers', async () => {
  const places = await listPlaces();
  expect(new Set(places.map(({ name }) => name)).size).toBeGreaterThan(6);
  const asked: {
    readonly what: string;
    readonly target: string;
    readonly fault: Fault;
    readonly reply: Promise<Reply>;
  }[] = [];
  for (const place of places)
    for (const fault of faultsAt(place)) {
      const { reply } = await inject(place, fault);
      const what = `${place.name}, call ${place.index}, ${fault.kind}`;
      asked.push({ what, target: place.target, fault, reply });
      if (fault.kind !== 'never answers') await reply;
    }
  clockMs += keptMs;
  await Promise.all(asked.map(({ reply }) => reply));
  await new Promise((resolve) => setImmediate(resolve)); // the log is written after the answers
  const wrong: string[] = [];
  for (const { what, target, fault, reply } of asked)
    wrong.push(...wrongOf(target, await reply, fault).map((one) => `${target}: ${what}: ${one}`));
  longWork = createLongWork(() => clockMs);
  for (const target of targets) expect((await ask(target)).status, target).toBeLessThan(500);
  tally({ places: places.length, faults: asked.length, 'answers not as promised': wrong.length });
  expect(wrong).toEqual([]);
  expect(asked.filter(({ fault }) => fault.kind === 'never answers').length).toBeGreaterThan(10);
});

test('injected faults: whoever may not read is told so before anything that could fail is called', async () => {
  const forged = { userId: reader.userId, secret: 'not the secret' };
  const protectedTargets = targets.filter((target) => target.startsWith('/api/v1/') && !target.includes('discovery'));
  for (const target of protectedTargets)
    for (const as of [forged, null]) {
      calls = [];
      const { status } = await ask(target, as);
      expect([target, status, calls]).toEqual([target, as === null ? 400 : 401, []]);
    }
});
