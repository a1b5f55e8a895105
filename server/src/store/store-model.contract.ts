// Compares an engine with a simple model: a list of reports per stream.
import type { FeedId } from '@sealpost/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { rekeyedReport } from '../../../bench/rekeyed-reports.ts';
import { seedOf, tally } from '../../../tests/support/full-count.ts';
import { secondStream } from '../../../tests/support/samples.ts';
import { withPrice } from './format/report-contents.ts';
import type { AppendOutcome, NewReport, Store, StoredReport } from './store.ts';
import { expectedCandles } from './store-candles.contract.ts';
import { type EngineUnderTest, trimAll } from './store-samples.fixture.ts';

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
const runOfReports: fc.Arbitrary<Run> = fc.record({
  feedId,
  from: second,
  width: fc.integer({ min: 1, max: 4 }),
  count: fc.integer({ min: 1, max: 60 }),
  gap: fc.integer({ min: 0, max: 3 }),
  version: fc.constantFrom(1, 2),
});

const appendCommand = fc.tuple(runOfReports, fc.boolean()).map(([run, isTwice]) => ({
  toString: () => `append ${isTwice ? 'twice ' : ''}${JSON.stringify(run)}`,
  check: async ({ store, model }: World) => {
    const once = batchOf(run, Math.max(run.from, model.horizon + 10));
    const batch = isTwice ? once.flatMap((one) => [one, one]) : once;
    expect(await store.reports.append(batch)).toEqual(batch.map((one) => appendToModel(model, one)));
    expect(await store.reports.position()).toBe(model.appended);
  },
}));

/** What is younger than the boundary is stored, whatever is removed meanwhile. */
const trimmedAppendCommand = fc.tuple(runOfReports, second).map(([run, before]) => ({
  toString: () => `append while trimming before ${before} ${JSON.stringify(run)}`,
  check: async ({ store, model }: World) => {
    const horizon = raiseHorizon(model, before);
    const batch = batchOf(run, Math.max(run.from, horizon + 10));
    const [outcomes] = await Promise.all([store.reports.append(batch), trimAll(store, (t0 + horizon) * 1_000)]);
    expect(outcomes).toEqual(batch.map((one) => appendToModel(model, one)));
    expect(await store.reports.position()).toBe(model.appended);
  },
}));

const concurrentCommand = fc.tuple(runOfReports, fc.nat(59)).map(([run, skipped]) => ({
  toString: () => `append twice at once, once without ${skipped}, ${JSON.stringify(run)}`,
  check: async ({ store, model }: World) => {
    const batch = batchOf(run, Math.max(run.from, model.horizon + 10));
    const both = await Promise.all([batch, batch.slice(skipped)].map((one) => store.reports.append(one)));
    const isStored = (outcome: AppendOutcome): boolean => outcome === 'stored';
    const expected = batch.map((one) => appendToModel(model, one));
    expect(both.flat().filter(isStored)).toEqual(expected.filter(isStored));
    expect(await store.reports.position()).toBe(model.appended);
  },
}));

/** Whether such a report is there still is up to the engine, so the model learns of its position only. */
const oldAppendCommand = runOfReports.map((run) => ({
  toString: () => `append before the boundary ${JSON.stringify(run)}`,
  check: async ({ store, model }: World) => {
    const batch = batchOf(run, model.horizon - 600).filter(
      ({ observationsMs: ms }) => ms < (t0 + model.horizon) * 1_000,
    );
    const outcomes = await store.reports.append(batch);
    model.appended += outcomes.filter((outcome) => outcome === 'stored').length;
    expect(await store.reports.position()).toBe(model.appended);
  },
}));

/** Candles and counts are those of what pages have, hidden reports included. */
const candlesCommand = fc.constant({
  toString: () => 'candles',
  check: async ({ store }: World) => {
    let count = 0;
    for (const of of streams) {
      const { reports } = await store.reports.page(of, 0, 100_000);
      count += reports.length;
      const priced = reports.map(withPrice);
      for (const resolution of [60, 3_600, 86_400])
        expect(await store.reports.candles(of, { from: 0, to: t0 + 86_400, resolution })).toEqual(
          expectedCandles(priced, resolution),
        );
    }
    expect((await store.reports.stats()).reports).toBe(count);
  },
});

type Run = { readonly [K in 'from' | 'width' | 'count' | 'gap' | 'version']: number } & { readonly feedId: FeedId };

const batchOf = ({ feedId: of, width, count, gap, version }: Run, from: number): readonly NewReport[] =>
  Array.from({ length: count }, (_, i) => {
    const validFrom = t0 + from + i * (width + gap);
    return withPrice(rekeyedReport(of, validFrom, validFrom + width - 1, version * validFrom));
  });

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
  const { json, more, lastMs } = await store.reports.renderedPage(asked, moment, limit);
  const sent = JSON.parse(`{"reports":[${json}]}`) as { reports: Sent[] }; // our own rendering
  const expected = rest.slice(0, limit);
  expect([sent.reports.map(sentHex), more, lastMs]).toEqual([
    expected.map(hex),
    rest.length > limit,
    expected.at(-1)?.observationsMs,
  ]);
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

/** Moves the boundary of retention, and removes from the model what is before it. */
const raiseHorizon = (model: Model, before: number): number => {
  model.horizon = Math.max(model.horizon, Math.floor(before / 4));
  for (const [key, reports] of model.reports)
    model.reports.set(
      key,
      reports.filter(({ observationsMs }) => observationsMs >= (t0 + model.horizon) * 1_000),
    );
  return model.horizon;
};

const trimCommand = second.map((before) => ({
  toString: () => `trim before ${before}`,
  check: async ({ store, model }: World) => void (await trimAll(store, (t0 + raiseHorizon(model, before)) * 1_000)),
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
  { weight: 3, arbitrary: trimmedAppendCommand },
  { weight: 3, arbitrary: concurrentCommand },
  { weight: 3, arbitrary: oldAppendCommand },
  { weight: 3, arbitrary: candlesCommand },
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
    await fc.assert(property, { numRuns: runs, seed: seedOf(Math.floor(Math.random() * 2 ** 31)) });
    tally({ [`sequences on ${name}`]: runs, 'commands in all': executed, divergences: 0 });
  }, 7_200_000);
};
