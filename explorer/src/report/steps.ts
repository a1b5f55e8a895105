// The reports that one can step through: those that were read, what is next to each, and new ones as they arrive.
import { type ReadonlySignal, signal } from '@preact/signals';
import type { Client } from '@sealpost/client';
import type { ReportJson } from '@sealpost/protocol';
import type { Live } from '../state/live-prices.ts';
import { type Direction, gapMsBetween, isMillisecondStream, readSide, reportSpanOf, type Side } from './neighbors.ts';

/** What is known about both sides of a report; undefined while it is read. */
export type Sides = { readonly [D in Direction]?: Side };

export type Steps = {
  /** The report of an address, if it was read before. */
  readonly find: (timestamp: number, ms: number | undefined) => ReportJson | undefined;
  /** Remembers the report of an address. */
  readonly keep: (timestamp: number, ms: number | undefined, report: ReportJson) => void;
  /** By full report. */
  readonly sides: ReadonlySignal<ReadonlyMap<string, Sides>>;
  /** Reads the sides of the report on screen that are not known, so that a step shows the next report at once. Follows the stream from its newest report on. */
  readonly look: (own: ReportJson) => void;
  readonly close: () => void;
};

/** Reports and sides that are kept. */
const cachedMax = 200;

const keyOf = (timestamp: number, ms: number | undefined): string => `${timestamp} ${ms ?? ''}`;

/** The newest entries of a map, and older ones that are needed. */
const newest = <V>(
  entries: readonly (readonly [string, V])[],
  isNeeded: (key: string, value: V) => boolean,
): Map<string, V> =>
  new Map(entries.filter(([key, value], i) => i >= entries.length - cachedMax || isNeeded(key, value)));

/** The reports and sides that are known. Those of the report on screen and next to it stay, however many reports arrive. */
const createNeighborCache = (feedId: string) => {
  const sides = signal<ReadonlyMap<string, Sides>>(new Map());
  let reports = new Map<string, ReportJson>();
  let onScreen = ''; // its full report
  const isNear = (fullReport: string): boolean => {
    const { previous, next } = sides.peek().get(onScreen) ?? {};
    const isOn = (side: Side | undefined): boolean => side?.kind === 'report' && side.report.fullReport === fullReport;
    return fullReport === onScreen || isOn(previous) || isOn(next);
  };
  const keep: Steps['keep'] = (timestamp, ms, report) => {
    reports = newest([...reports, [keyOf(timestamp, ms), report]], (_, { fullReport }) => isNear(fullReport));
  };
  const remember = (report: ReportJson): void =>
    keep(report.observationsTimestamp, isMillisecondStream(feedId) ? reportSpanOf(report).toMs : undefined, report);
  const set = (own: ReportJson, known: Sides): void => {
    const { fullReport } = own;
    const others = [...sides.peek()].filter(([key]) => key !== fullReport);
    sides.value = newest([...others, [fullReport, { ...sides.peek().get(fullReport), ...known }]], isNear);
  };
  /** Both sides of a pair. */
  const join = (earlier: ReportJson, later: ReportJson): void => {
    const gapMs = gapMsBetween(earlier, later);
    remember(earlier);
    remember(later);
    set(earlier, { next: { kind: 'report', report: later, gapMs } });
    set(later, { previous: { kind: 'report', report: earlier, gapMs } });
  };
  const show = (own: ReportJson): void => {
    onScreen = own.fullReport;
  };
  const find: Steps['find'] = (timestamp, ms) => reports.get(keyOf(timestamp, ms));
  return { sides, find, keep, remember, set, join, show };
};

export function createSteps(client: Pick<Client, 'at' | 'page'>, live: Pick<Live, 'watch'>, feedId: string): Steps {
  const abort = new AbortController();
  const { sides, find, keep, remember, set, join, show } = createNeighborCache(feedId);
  let follow: { readonly stop: () => void } | undefined;
  const followFrom = (first: ReportJson): void => {
    let tip = first;
    const stop = live.watch(
      [feedId],
      ({ report }) => {
        if (reportSpanOf(report).toMs <= reportSpanOf(tip).toMs) return;
        join(tip, report);
        tip = report;
      },
      isMillisecondStream(feedId) ? first.observationsTimestamp : first.observationsTimestamp + 1,
    );
    follow = { stop };
  };
  const readOne = async (own: ReportJson, direction: Direction): Promise<void> => {
    const side = await readSide(client, own, direction, abort.signal);
    if (abort.signal.aborted) return;
    const known = sides.peek().get(own.fullReport)?.[direction];
    if (known?.kind === 'report') return; // it arrived meanwhile
    if (side.kind !== 'report') set(own, { [direction]: side });
    else if (direction === 'previous') join(side.report, own);
    else join(own, side.report);
    if (direction === 'next' && side.kind === 'end' && follow === undefined) followFrom(own);
  };
  return {
    find,
    keep,
    sides,
    look: (own) => {
      show(own);
      const known = sides.peek().get(own.fullReport);
      for (const direction of ['previous', 'next'] as const) {
        const side = known?.[direction];
        if (side?.kind === 'report') remember(side.report);
        else void readOne(own, direction);
      }
    },
    close: () => {
      abort.abort();
      follow?.stop();
    },
  };
}
