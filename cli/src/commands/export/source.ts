// Where an export reads from: a store, or a server through the client. Both give pages of reports in order of observation, and name what could not
// be read.
import type { Client } from '@sealpost/client';
import type { ExportStream } from '@sealpost/client/export';
import { type FeedId, parseFeedId, type ReportJson, toReportJson } from '@sealpost/protocol';
import type { Damage, Store, StoredReport } from '@sealpost/server/store/store';
import type { OpenClient } from '../../credentials.ts';
import { formatSecond } from '../../formats.ts';
import { findRemoteFeeds, readRemotePages } from '../../remote-client.ts';
import type { Session } from '../../session.ts';
import { findReadableStream } from '../../stream-argument.ts';

/** Seconds of observation, both included. */
export type ExportSpan = { readonly from: number; readonly to: number };

export type ExportSource = {
  /** The streams of these arguments; all that can be read if there are none. */
  readonly find: (raws: readonly string[]) => Promise<readonly ExportStream[]>;
  /** Pages of a span, oldest first. Ends when the signal that it was made with is aborted. */
  readonly pages: (stream: ExportStream, span: ExportSpan) => AsyncIterable<readonly ReportJson[]>;
  /** What was skipped since the last call. */
  readonly takeProblems: () => readonly string[];
};

const pageReports = 1_000; // as many as a second of a millisecond stream can hold, so that a page always ends with one

const hexOf = (bytes: Uint8Array): string =>
  `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')}`;

const secondOf = ({ observationsMs }: StoredReport): number => Math.floor(observationsMs / 1_000);

/** Records whose damage costs reports. */
const reportTables: readonly string[] = ['runs', 'reports', 'numbers', 'feedIds'];

/** Reads a store, while others write and retention deletes. */
export function createStoreSource(store: Store, signal: AbortSignal): ExportSource {
  const exported = new Map<string | undefined, string>([[undefined, 'A stream']]);
  const told = new Set<string>();
  const describe = ({ table, key, reason, feedId }: Damage): string =>
    `${exported.get(feedId)}: record ${key} of ${table} is damaged and was skipped: ${reason}. Run: sealpost store verify.`;
  return {
    find: async (raws) =>
      raws.length > 0
        ? Promise.all(raws.map((raw) => findReadableStream(store, raw)))
        : (await store.admin.list('stream')).map(({ feedId, name }) => ({ feedId: parseFeedId(feedId), name })),
    pages: ({ feedId, name }, span) => {
      exported.set(feedId, name);
      return storedPages(store, feedId, span, signal);
    },
    takeProblems: () =>
      store.damage().flatMap((damage) => {
        const id = `${damage.table} ${damage.key}`;
        if (told.has(id) || !reportTables.includes(damage.table) || !exported.has(damage.feedId)) return [];
        told.add(id);
        return [describe(damage)];
      }),
  };
}

async function* storedPages(
  { reports }: Store,
  feedId: FeedId,
  { from, to }: ExportSpan,
  signal: AbortSignal,
): AsyncGenerator<readonly ReportJson[]> {
  for (let start = from; start <= to && !signal.aborted; ) {
    const page = await reports.page(feedId, start, pageReports);
    const within = page.reports.filter((report) => secondOf(report) <= to);
    if (within.length > 0) yield within.map((one) => toReportJson(feedId, one, hexOf(one.fullReport)));
    const last = page.reports.at(-1);
    if (!page.more || last === undefined) return;
    start = secondOf(last) + 1;
  }
}

/** Reads a server: ours, or any other with the API of the specification. */
export function createServerSource(
  openClient: OpenClient,
  url: URL,
  session: Session,
  signal: AbortSignal,
): ExportSource {
  const problems: string[] = [];
  let reading = '';
  const client = openClient(url, session, {
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      if (response.headers.get('Sealpost-Missing') === 'damaged')
        problems.push(`${reading}: the server left out reports that are damaged in its store.`);
      return response;
    },
  });
  return {
    find: (raws) => findRemoteFeeds(client, url, raws, signal),
    pages: (stream, span) => {
      reading = stream.name;
      return serverPages(client, stream, span, signal, (problem) => void problems.push(problem));
    },
    takeProblems: () => [...new Set(problems.splice(0))],
  };
}

async function* serverPages(
  client: Client,
  { feedId, name }: ExportStream,
  { from, to }: ExportSpan,
  signal: AbortSignal,
  tell: (problem: string) => void,
): AsyncGenerator<readonly ReportJson[]> {
  let hasBegun = false;
  const onGap = (_: number, start: number): void => {
    if (hasBegun || from > 0)
      tell(`${name}: the server keeps reports from ${formatSecond(start - 1)} on; earlier ones are missing.`);
  };
  for await (const { reports } of readRemotePages(client, feedId, { from, to, signal }, onGap)) {
    hasBegun = true;
    yield reports;
  }
}
