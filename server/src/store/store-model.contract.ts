// Compares an engine with a simple model: a list of reports per stream.
import type { FeedId } from '@sealpost/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { rekeyedReport } from '../../../bench/rekeyed-reports.ts';
import { barSeed, tally } from '../../../tests/bars/tally.ts';
import { secondStream } from '../../../tests/support/samples.ts';
import type { AppendOutcome, Store, StoredReport } from './store.ts';
import type { EngineUnderTest } from './store-samples.fixture.ts';

const streams = [secondStream(1), secondStream(2), secondStream(3)];
const t0 = 1_763_200_000;
const rangeSeconds = 4_000;

/** An engine whose process can also end without closing anything. */
type CrashingEngine = EngineUnderTest & {
  /** Leaves the store as kill -9 does: what is opened next finds what was durable at this moment. */
  readonly crash: () => Promise<void>;
};

type Model = { readonly reports: Map<FeedId, StoredReport[]>; horizon: number; appended: number };
/** A reading; the last ones are asked again at each, so that what an engine keeps of them is compared once more after writes. */
type Reading = { readonly feedId: FeedId; readonly at: number; readonly limit: number };
type World = { store: Store; readonly engine: CrashingEngine; readonly model: Model; asked: readonly Reading[] };
const askedAgain = 3;

const secondOf = (ms: number) => Math.floor(ms / 1_000);
const ofStream = (model: Model, feedId: FeedId): StoredReport[] => model.reports.get(feedId) ?? [];
const hex = (one: StoredReport | undefined) => one && Buffer.from(one.fullReport).toString('hex');

const appendToModel = (model: Model, one: StoredReport): AppendOutcome => {
  const known = ofStream(model, one.feedId);
  const same = known.find(({ observationsMs }) => observationsMs === one.observationsMs);
  if (same) return hex(same) === hex(one) ? 'duplicate' : 'conflict';
  if (known.some((other) => other.validFromMs <= one.observationsMs && one.validFromMs <= other.observationsMs))
    return 'overlap';
  model.reports.set(
    one.feedId,
    [...known, one].sort((a, b) => a.observationsMs - b.observationsMs),
  );
  model.appended += 1;
  return 'stored';
};

const feedId = fc.constantFrom(...streams);
const second = fc.nat(rangeSeconds);

/** A run of contiguous reports, so that blocks close and late ones fall into them. Engines do not check signatures, and these have none that is valid. */
const appendCommand = fc
  .record({
    feedId,
    from: second,
    width: fc.integer({ min: 1, max: 4 }),
    count: fc.integer({ min: 1, max: 60 }),
    gap: fc.integer({ min: 0, max: 3 }),
    version: fc.constantFrom(1, 2),
  })
  .map((run) => ({
    toString: () => `append ${JSON.stringify(run)}`,
    check: async ({ store, model }: World) => {
      const from = Math.max(run.from, model.horizon + 10);
      const batch = Array.from({ length: run.count }, (_, i) => {
        const validFrom = t0 + from + i * (run.width + run.gap);
        return rekeyedReport(run.feedId, validFrom, validFrom + run.width - 1, run.version * validFrom);
      });
      expect(await store.reports.append(batch)).toEqual(batch.map((one) => appendToModel(model, one)));
      expect(await store.reports.position()).toBe(model.appended);
    },
  }));

const expectedOf = (model: Model, { feedId: asked, at }: Reading) => {
  const moment = t0 + Math.max(at, model.horizon + 10);
  const rest = ofStream(model, asked).filter(({ observationsMs }) => secondOf(observationsMs) >= moment);
  return { moment, rest, holding: rest.find(({ validFromMs }) => secondOf(validFromMs) <= moment) };
};

type Sent = { readonly fullReport: string };
const sentHex = ({ fullReport }: Sent): string => fullReport.slice(2);

/** What the API sends is of the same reports. */
const checkRendered = async ({ store, model }: World, reading: Reading): Promise<void> => {
  const { feedId: asked, limit } = reading;
  const { moment, rest, holding } = expectedOf(model, reading);
  const [rendered] = await store.reports.renderedAt([asked], moment);
  expect(rendered && sentHex(JSON.parse(String(rendered.json)))).toBe(hex(holding));
  const { json, body, more, lastMs, release } = await store.reports.renderedPage(asked, moment, limit);
  const sent = JSON.parse(String(body ?? `{"reports":[${json.join()}]}`)) as { reports: Sent[] }; // our own rendering
  const expected = rest.slice(0, limit);
  expect([sent.reports.map(sentHex), more, lastMs]).toEqual([
    expected.map(hex),
    rest.length > limit,
    expected.at(-1)?.observationsMs,
  ]);
  release?.();
};

const checkReading = async ({ store, model }: World, reading: Reading): Promise<void> => {
  const { feedId: asked, limit } = reading;
  const { moment, rest, holding } = expectedOf(model, reading);
  expect(hex((await store.reports.at([asked], moment))[0])).toBe(hex(holding));
  const page = await store.reports.page(asked, moment, limit);
  expect([page.reports.map(hex), page.more]).toEqual([rest.slice(0, limit).map(hex), rest.length > limit]);
  const next = (await store.reports.neighbours(asked, moment)).next;
  expect(next?.observationsMs).toBe(rest[0]?.observationsMs);
  const newest = ofStream(model, asked).at(-1);
  if (newest && secondOf(newest.observationsMs) >= t0 + model.horizon)
    expect(store.reports.latest(asked)?.observationsMs).toBe(newest.observationsMs);
};

const readCommand = fc.record({ feedId, at: second, limit: fc.integer({ min: 1, max: 200 }) }).map((reading) => ({
  toString: () => `read ${reading.feedId.slice(-1)} at ${reading.at} limit ${reading.limit}`,
  check: async (world: World) => {
    await checkReading(world, reading);
    for (const one of [...world.asked, reading]) await checkRendered(world, one);
    world.asked = [...world.asked, reading].slice(-askedAgain);
  },
}));

const trimCommand = second.map((before) => ({
  toString: () => `trim before ${before}`,
  check: async ({ store, model }: World) => {
    model.horizon = Math.max(model.horizon, Math.floor(before / 4));
    while (
      (await store.reports.trim({ beforeMs: (t0 + model.horizon) * 1_000, bytesMax: Number.POSITIVE_INFINITY })).more
    );
    for (const [key, reports] of model.reports)
      model.reports.set(
        key,
        reports.filter(({ observationsMs }) => observationsMs >= (t0 + model.horizon) * 1_000),
      );
  },
}));

const reopenCommand = fc.constant({
  toString: () => 'reopen',
  check: async (world: World) => {
    await world.store.close();
    world.store = await world.engine.open('write');
  },
});

const crashCommand = fc.constant({
  toString: () => 'crash',
  check: async (world: World) => {
    await world.engine.crash();
    await world.store.close();
    world.store = await world.engine.open('write');
  },
});

// Opening takes as long as a dozen other commands.
const command = fc.oneof(
  { weight: 30, arbitrary: appendCommand },
  { weight: 40, arbitrary: readCommand },
  { weight: 5, arbitrary: trimCommand },
  { weight: 1, arbitrary: reopenCommand },
  { weight: 1, arbitrary: crashCommand },
);

/** `runs` sequences of 100 commands on average. */
export const testStoreModel = (name: string, createEngine: () => Promise<CrashingEngine>, runs: number): void => {
  test(`${name} store: agrees with the model on any sequence of append, read, trim, crash, close and reopen`, async () => {
    let executed = 0;
    const sequences = fc.array(command, { minLength: 1, maxLength: 250, size: 'max' });
    const property = fc.asyncProperty(sequences, async (commands) => {
      const engine = await createEngine();
      const world: World = {
        store: await engine.open('write'),
        engine,
        model: { reports: new Map(), horizon: 0, appended: 0 },
        asked: [],
      };
      try {
        for (const { check } of commands) await check(world);
        executed += commands.length;
      } finally {
        await world.store.close();
        await engine.remove();
      }
    });
    await fc.assert(property, { numRuns: runs, seed: barSeed(Math.floor(Math.random() * 2 ** 31)) });
    tally({ [`sequences on ${name}`]: runs, 'commands in all': executed, divergences: 0 });
  }, 7_200_000);
};
