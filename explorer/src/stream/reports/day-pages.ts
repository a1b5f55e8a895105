// Reads the reports of a day a page at a time, from either end or around a time. The API reads forward only; backward, the second at which
// to begin follows from the stream's interval, and gaps are skipped with the neighbors of an explained miss.
import { type Client, SealpostError } from '@sealpost/client';
import { type Body, daySeconds, limits, type ReportJson } from '@sealpost/protocol';
import { readTooOld } from '../../ui/price-at/price-lookup.ts';

/** Which reports of a day: the last ones up to a second, or the first ones from a second on. */
export type DayEdge = { readonly side: 'before' | 'after'; readonly second: number };

export type DayPage = {
  /** Oldest first; those of a second are never split. */
  readonly reports: readonly ReportJson[];
  /** Whether the day may have more on either side. */
  readonly hasOlder: boolean;
  readonly hasNewer: boolean;
  /** False once it is known that the stream has no report before the day. */
  readonly hasEarlierDays: boolean;
  /** The second from which the server keeps reports, if that is why the page begins there. */
  readonly retainedFrom: number | undefined;
};

/** Reports of a page. */
const dayPageSize = 50;

/** Requests of a page that is read backward, at most. */
const roundsMax = 12;

type Reader = Pick<Client, 'page' | 'at'>;

type DayRead = {
  readonly feedId: string;
  /** First second of the day. */
  readonly day: number;
  readonly edge: DayEdge;
  /** The stream's interval, if it is known. */
  readonly intervalMs: number | undefined;
  readonly nowSeconds: number;
};

/** Reads a page of a day. */
export const readDayPage = (client: Reader, read: DayRead, signal: AbortSignal): Promise<DayPage> =>
  read.edge.side === 'after' ? readForward(client, read, signal) : readBackward(client, read, signal);

const readForward = async (client: Reader, read: DayRead, signal: AbortSignal): Promise<DayPage> => {
  const { feedId, day, edge } = read;
  const last = day + daySeconds - 1;
  const { reports: found, more, retainedFrom } = await readPage(client, feedId, edge.second, last, dayPageSize, signal);
  const reports = found.filter(({ observationsTimestamp }) => observationsTimestamp <= last);
  // Only for an empty page, which is how a user gets there who steps back.
  const hasEarlierDays =
    retainedFrom === undefined &&
    (reports.length > 0 || day === 0 || (await previousEnd(client, feedId, day - 1, signal)) >= 0);
  const hasNewer = more && reports.length === found.length;
  return { reports, hasOlder: edge.second > day && retainedFrom === undefined, hasNewer, hasEarlierDays, retainedFrom };
};

const readBackward = async (client: Reader, read: DayRead, signal: AbortSignal): Promise<DayPage> => {
  const { feedId, day, edge, intervalMs = 1_000, nowSeconds } = read;
  const step = Math.max(1, Math.ceil((dayPageSize * intervalMs * 1.2) / 1_000));
  let reports: readonly ReportJson[] = [];
  let end = Math.min(edge.second, nowSeconds);
  let retainedFrom: number | undefined;
  for (let round = 0; round < roundsMax && end >= day && reports.length < dayPageSize; round += 1) {
    const start = Math.max(day, end - step + 1);
    const found = await readSeconds(client, feedId, start, end, signal, reports.length > 0);
    reports = [...found.reports, ...reports];
    retainedFrom = found.retainedFrom;
    if (retainedFrom !== undefined) end = -1;
    else
      end =
        found.reports.length > 0 || start === day ? start - 1 : await previousEnd(client, feedId, start - 1, signal);
  }
  const shown = lastWholeSeconds(reports);
  return {
    reports: shown,
    hasOlder: shown.length < reports.length || end >= day,
    hasNewer: edge.second < day + daySeconds - 1,
    hasEarlierDays: end >= 0,
    retainedFrom: shown.length < reports.length ? undefined : retainedFrom,
  };
};

type Seconds = { readonly reports: readonly ReportJson[]; readonly retainedFrom: number | undefined };

/** All reports of some seconds. A page that does not hold them all is continued, so that the last ones are among them. */
const readSeconds = async (
  client: Reader,
  feedId: string,
  from: number,
  to: number,
  signal: AbortSignal,
  mayBeTooOld: boolean,
): Promise<Seconds> => {
  const all: ReportJson[] = [];
  let retainedFrom: number | undefined;
  for (let start = from; start <= to; ) {
    const page = await readPage(client, feedId, start, to, limits.pageLimitMax, signal).catch((error: unknown) => {
      const oldest = mayBeTooOld ? readTooOld(error)?.oldestTimestamp : undefined;
      if (oldest === undefined) throw error;
      return { reports: [], more: false, nextStartTimestamp: to + 1, retainedFrom: oldest };
    });
    retainedFrom ??= page.retainedFrom;
    all.push(...page.reports.filter(({ observationsTimestamp }) => observationsTimestamp <= to));
    if (!page.more || page.reports.length === 0) break;
    start = page.nextStartTimestamp;
  }
  return { reports: all, retainedFrom };
};

/** How often a page is read again from a later second: retention moves on meanwhile. */
const laterMax = 3;

/** A page from a second on; from the oldest second that the server keeps, if that is later and not after `to`. */
const readPage = async (
  client: Reader,
  feedId: string,
  from: number,
  to: number,
  limit: number,
  signal: AbortSignal,
): Promise<
  Pick<Awaited<ReturnType<Client['page']>>, 'reports' | 'more' | 'nextStartTimestamp'> & Pick<Seconds, 'retainedFrom'>
> => {
  let retainedFrom: number | undefined;
  for (let later = 1; ; later += 1) {
    try {
      return { ...(await client.page(feedId, retainedFrom ?? from, limit, { signal })), retainedFrom };
    } catch (error) {
      const oldest = readTooOld(error)?.oldestTimestamp;
      if (oldest === undefined || oldest > to || later > laterMax) throw error;
      retainedFrom = Math.ceil(oldest) + later - 1;
    }
  }
};

/** The second of the newest report up to this one; −1 if there is none. */
const previousEnd = async (client: Reader, feedId: string, second: number, signal: AbortSignal): Promise<number> => {
  try {
    await client.at(feedId, second, { signal });
    return second;
  } catch (error) {
    if (!(error instanceof SealpostError)) throw error;
    if (error.code === 'timestamp_out_of_bounds') return -1; // before retained history
    if (error.code !== 'report_not_found') throw error;
    const { previous } = error.details as Partial<Body<'ReportMiss'>>; // the details of a miss
    return previous?.observationsTimestamp ?? -1;
  }
};

/** The last reports of a list, a page of them, and the rest of the first second. */
const lastWholeSeconds = (reports: readonly ReportJson[]): readonly ReportJson[] => {
  const first = reports.at(-dayPageSize)?.observationsTimestamp ?? 0;
  return reports.filter(({ observationsTimestamp }) => observationsTimestamp >= first);
};
