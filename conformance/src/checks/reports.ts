// The reports that a run has seen, by all operations: bytes, signatures, windows, and whether streams continue. Runs after the other reads.
import { explainVerification, verifyReport } from '@sealpost/protocol';
import type { Check } from '../check.ts';
import type { CheckContext } from '../check-context.ts';
import { reportsOf, type SeenReport, spanOf } from '../reports.ts';
import { isAlwaysOn, targets } from '../sample.ts';
import { demand, SkipError } from '../verdict.ts';

/** Reports whose signatures are verified: a few milliseconds each. */
const verifiedMax = 100;
/** Reports of each stream whose windows are compared. */
const windowsRead = 60;

const seenReports = async ({ ask, pool, sample }: CheckContext): Promise<readonly SeenReport[]> => {
  for (const { feedId, newest } of (await sample.reporting()).slice(0, pool.all().length > 20 ? 0 : 6))
    await ask(targets.page(feedId, Math.max(0, newest.observationsTimestamp - 10), 10));
  return pool.all();
};

const where = ({ report }: SeenReport): string =>
  `the report of ${report.feedID} observed at ${report.observationsTimestamp}`;

const decodes: Check['run'] = async (context) => {
  const bad = (await seenReports(context)).find(({ problem }) => problem !== undefined);
  demand(
    bad === undefined,
    'bytes that decode: context, a body that begins as every schema does, signatures',
    () => `${bad && where(bad)}: ${bad?.problem}`,
    bad,
  );
};

const matchesBytes: Check['run'] = async (context) => {
  for (const seen of await seenReports(context)) {
    const { decoded, report } = seen;
    if (decoded === undefined) continue;
    demand(
      decoded.body.feedId === report.feedID,
      `feedID ${decoded.body.feedId}, as signed`,
      () => report.feedID,
      seen,
    );
    const { fromMs, toMs } = spanOf(seen);
    const [from, to] = [Math.floor(fromMs / 1_000), Math.floor(toMs / 1_000)];
    const hasStart = decoded.body.version !== 1; // version 1 has no beginning
    demand(
      (!hasStart || report.validFromTimestamp === from) && report.observationsTimestamp === to,
      `valid from ${from} to ${to}, as signed`,
      () => `${report.validFromTimestamp} to ${report.observationsTimestamp}`,
      seen,
    );
  }
};

const windowOrder: Check['run'] = async (context) => {
  for (const seen of await seenReports(context)) {
    const { fromMs, toMs } = spanOf(seen);
    demand(
      fromMs <= toMs,
      'validFromTimestamp up to observationsTimestamp',
      () => `${where(seen)} is valid from ${fromMs} ms to ${toMs} ms`,
      seen,
    );
  }
};

/** Evenly chosen, so that every operation and stream is represented. */
const spread = <T>(values: readonly T[], max: number): readonly T[] => {
  const step = Math.max(1, values.length / max);
  return Array.from({ length: Math.min(max, values.length) }, (_, i) => values[Math.floor(i * step)] as T); // i * step is below the length
};

const signedByRegistered: Check['run'] = async (context) => {
  const signers = await context.signers();
  for (const seen of spread(await seenReports(context), verifiedMax)) {
    const verdict = seen.decoded && verifyReport(seen.decoded.full, signers);
    if (verdict === undefined || verdict.ok || verdict.reason === 'wrong_signature_count') continue;
    demand(false, 'registered signers', () => `${where(seen)}: ${explainVerification(verdict)}`, seen);
  }
};

const signedByQuorum: Check['run'] = async (context) => {
  const signers = await context.signers();
  for (const seen of await seenReports(context)) {
    const set = seen.decoded && signers.get(seen.decoded.full.context.configDigest);
    if (set === undefined) continue;
    const count = seen.decoded?.full.signatures.length;
    demand(count === set.f + 1, `${set.f + 1} signatures`, () => `${where(seen)} has ${count}`, seen);
  }
};

/** The last windows of each sampled stream, oldest first. */
const windowsOf = async (context: CheckContext): Promise<ReadonlyMap<string, readonly SeenReport[]>> => {
  const found = new Map<string, readonly SeenReport[]>();
  for (const { feedId, newest } of await context.sample.reporting()) {
    const start = Math.max(0, newest.observationsTimestamp - windowsRead);
    const whole = await context.ask(targets.page(feedId, start, 100));
    const answer = whole.status === 400 ? await context.ask(targets.page(feedId, start, 10)) : whole;
    const { reports } = Object(answer.json);
    const keys = new Set((Array.isArray(reports) ? reports : []).map((report) => Object(report).fullReport));
    const seen = context.pool.all().filter(({ report }) => report.feedID === feedId && keys.has(report.fullReport));
    found.set(
      feedId,
      seen.toSorted((a, b) => spanOf(a).toMs - spanOf(b).toMs || spanOf(a).fromMs - spanOf(b).fromMs),
    );
  }
  return found;
};

const pairsOf = <T>(values: readonly T[]): readonly (readonly [T, T])[] =>
  values.slice(1).map((value, i) => [values[i] as T, value] as const); // there is one before each

const noOverlap: Check['run'] = async (context) => {
  for (const seen of (await windowsOf(context)).values())
    for (const [before, after] of pairsOf(seen))
      demand(
        spanOf(after).fromMs > spanOf(before).toMs,
        'windows that follow each other',
        () =>
          `${where(after)} is valid from ${spanOf(after).fromMs} ms, the one before it to ${spanOf(before).toMs} ms`,
        after,
      );
};

/** One report for one window, whatever operation returned it. */
const oneReport: Check['run'] = async (context) => {
  await windowsOf(context);
  const bytes = new Map<string, SeenReport>();
  for (const seen of await seenReports(context)) {
    const { fromMs, toMs } = spanOf(seen);
    const key = `${seen.report.feedID} ${fromMs} ${toMs}`;
    const other = bytes.get(key);
    demand(
      other === undefined || other.report.fullReport === seen.report.fullReport,
      'one report for a window',
      () => `two different ones for ${where(seen)}`,
      seen,
    );
    bytes.set(key, seen);
  }
};

const contiguous: Check['run'] = async (context) => {
  const streams = await context.sample.reporting();
  for (const [feedId, seen] of await windowsOf(context)) {
    if (isAlwaysOn(streams.find((one) => one.feedId === feedId)?.entry) === false) continue;
    const unitMs = feedId[2] === '1' ? 1 : 1_000;
    for (const [before, after] of pairsOf(seen)) {
      const gapMs = spanOf(after).fromMs - spanOf(before).toMs - unitMs;
      demand(gapMs <= 0, 'windows without a gap', () => `${gapMs} ms are missing before ${where(after)}`, after);
    }
  }
};

/** The longest time between two of the last observations; undefined if there are fewer than two. */
const longestInterval = (seen: readonly SeenReport[]): number | undefined =>
  seen.length < 2 ? undefined : Math.max(...pairsOf(seen).map(([a, b]) => spanOf(b).toMs - spanOf(a).toMs));

/** Compares live streams with each other, each by its own pace: the run does not know what time reports follow. */
const continues: Check['run'] = async (context) => {
  const live = (await context.sample.reporting()).filter(({ entry }) => isAlwaysOn(entry) !== false);
  if (live.length < 2) throw new SkipError('Fewer than two sampled streams are live around the clock.');
  const windows = await windowsOf(context);
  const newest = new Map<string, number>();
  for (const { feedId } of live) {
    const [report] = reportsOf((await context.ask(targets.latest(feedId))).json);
    if (report !== undefined) newest.set(feedId, report.observationsTimestamp * 1_000);
  }
  const headMs = Math.max(...newest.values());
  for (const [feedId, toMs] of newest) {
    const intervalMs = longestInterval(windows.get(feedId) ?? []) ?? Number.POSITIVE_INFINITY;
    const allowedMs = Math.max(context.rules.staleAfterMs, 3 * intervalMs);
    const actual = () => `${(headMs - toMs) / 1_000} s behind`;
    const expected = `${feedId} at most ${allowedMs / 1_000} s behind the others`;
    demand(headMs - toMs <= allowedMs, expected, actual, requestOf(feedId));
  }
};

/** A live stream without a report, or one that gets none while the run waits. */
const available: Check['run'] = async ({ sample }) => {
  const live = (await sample.streams()).filter(({ entry }) => isAlwaysOn(entry) === true);
  if (live.length === 0) throw new SkipError('No sampled stream is live around the clock.');
  const empty = live.find(({ newest }) => newest === undefined);
  demand(
    empty === undefined,
    'a report of every live stream',
    () => `none of ${empty?.feedId}`,
    empty && requestOf(empty.feedId),
  );
};

const advances: Check['run'] = async (context) => {
  const live = (await context.sample.reporting()).filter(({ entry }) => isAlwaysOn(entry) === true);
  const [first] = live;
  if (first === undefined) throw new SkipError('No sampled stream is live around the clock.');
  const seconds = context.rules.liveMs / 1_000;
  demand(
    (await context.newReport()) !== undefined,
    `a new report of a live stream within ${seconds} s`,
    () => 'none',
    requestOf(first.feedId),
  );
};

const requestOf = (feedId: string) => ({
  request: { method: 'GET', target: targets.latest(feedId), signed: {}, headers: {} },
});

const span = "Together validFromTimestamp and observationsTimestamp define a span of time for the report's price.";
const quorum = 'A contract accepts a report that exactly f + 1 registered signers have signed.';

export const reportChecks: readonly Check[] = [
  {
    id: 'reports.bytes',
    title: 'fullReport decodes: context, body with a feed ID and a window, signatures',
    source: 'specification',
    sentence: 'A blob that holds the report context and the report body.',
    run: decodes,
  },
  {
    id: 'reports.same-as-signed',
    title: 'feedID and timestamps are those of the signed bytes',
    source: 'specification',
    sentence: 'A report belongs to a stream identified by feedID.',
    run: matchesBytes,
  },
  {
    id: 'reports.window',
    title: 'A window does not end before it begins',
    source: 'specification',
    sentence: span,
    run: windowOrder,
  },
  {
    id: 'reports.signers',
    title: 'Every signature is over these bytes, by a distinct registered signer',
    source: 'SDKs',
    sentence: quorum,
    run: signedByRegistered,
  },
  {
    id: 'reports.signature-count',
    title: 'Exactly f + 1 signers have signed',
    source: 'SDKs',
    sentence: quorum,
    run: signedByQuorum,
  },
  {
    id: 'reports.overlap',
    title: 'The windows of a stream do not overlap',
    source: 'specification',
    sentence: span,
    run: noOverlap,
  },
  {
    id: 'reports.one-per-window',
    title: 'There is one report for a window, whichever operation returns it',
    source: 'specification',
    sentence: span,
    run: oneReport,
  },
  {
    id: 'reports.gap',
    title: 'The last minute of a live stream has no gap',
    source: 'specification',
    sentence: 'an array of Report objects, sequential for the one stream, starting at startTimestamp.',
    run: contiguous,
  },
  {
    id: 'reports.available',
    title: 'Every live stream has a report',
    source: 'specification',
    sentence: 'It returns reports for the service.',
    run: available,
  },
  {
    id: 'reports.advance',
    title: 'Live streams get new reports',
    source: 'specification',
    sentence: 'Latest report of one stream',
    run: advances,
  },
  {
    id: 'reports.continue',
    title: 'No live stream has stopped',
    source: 'specification',
    sentence: 'Latest report of one stream',
    run: continues,
  },
];
