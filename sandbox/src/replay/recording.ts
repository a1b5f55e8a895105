// A file of reports to replay, NDJSON as `sealpost export` writes it. It is read as a stream, twice: once to find its times, streams and runs, once to replay.
// A file may have one stream after the other: each part whose times ascend is a run, and runs are merged.
import { createReadStream } from 'node:fs';
import { decodeFullReport, type FeedId, readReportBody, windowOf } from '@sealpost/protocol';
import { lineCharactersMax, parseReportLine } from '@sealpost/server/ingest/report-line';

/** Bytes of a file whose reports are in the order of their times; the end is not included. */
export type RecordedRun = { readonly start: number; readonly end: number };

export type Recording = {
  readonly file: string;
  readonly runs: readonly RecordedRun[];
  readonly feedIds: readonly FeedId[];
  readonly firstSecond: number;
  readonly lastSecond: number;
  readonly reports: number;
};

/** A report of the file. */
export type RecordedReport = { readonly second: number; readonly feedId: FeedId; readonly body: `0x${string}` };

/** A file that cannot be replayed: which line, and why. */
export class ReplayError extends Error {
  override readonly name = 'ReplayError';
}

/** Each run is read with a buffer of its own. */
const runsMax = 1_000;
const bufferBytes = 65_536;
const streamsMax = 10_000;

type Line = { readonly text: string; readonly start: number; readonly end: number };

/** The lines of a part of a file with their places; none is longer than a report can be. */
async function* linesOf(file: string, { start, end }: RecordedRun): AsyncGenerator<Line> {
  if (end <= start) return;
  const options = { start, ...(Number.isFinite(end) && { end: end - 1 }), highWaterMark: bufferBytes };
  let rest = Buffer.alloc(0);
  let at = start;
  for await (const chunk of createReadStream(file, options)) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (let cut = rest.indexOf(10); cut !== -1; cut = rest.indexOf(10)) {
      yield { text: rest.toString('utf8', 0, cut), start: at, end: at + cut + 1 };
      at += cut + 1;
      rest = rest.subarray(cut + 1);
    }
    if (rest.length > lineCharactersMax)
      throw new ReplayError(`${file} has a line of more than ${lineCharactersMax} bytes at byte ${at}.`);
  }
  if (rest.length > 0) yield { text: rest.toString('utf8'), start: at, end: at + rest.length };
}

const readReport = (text: string): RecordedReport => {
  const { body } = decodeFullReport(parseReportLine(text).fullReport as `0x${string}`); // the decoder checks it
  const fields = readReportBody(body);
  return { second: Math.floor(windowOf(fields).observationsMs / 1_000), feedId: fields.feedId, body };
};

/** Reads the whole file once. Throws a ReplayError that names the line. */
export async function scanRecording(file: string): Promise<Recording> {
  const runs: { start: number; end: number }[] = [];
  const feedIds = new Set<FeedId>();
  const seconds = { first: Number.POSITIVE_INFINITY, last: Number.NEGATIVE_INFINITY, before: Number.POSITIVE_INFINITY };
  let [reports, number] = [0, 0];
  for await (const { text, start, end } of linesOf(file, { start: 0, end: Number.POSITIVE_INFINITY })) {
    number += 1;
    if (text.trim() === '') continue;
    const { second, feedId } = readLine(file, number, text);
    const run = runs.at(-1);
    if (run === undefined || second < seconds.before) runs.push({ start, end });
    else run.end = end;
    if (runs.length > runsMax)
      throw new ReplayError(
        `${file} is not in the order of time, and has more than ${runsMax} parts that are. Sort it by observationsTimestamp.`,
      );
    seconds.before = second;
    seconds.first = Math.min(seconds.first, second);
    seconds.last = Math.max(seconds.last, second);
    feedIds.add(feedId);
    if (feedIds.size > streamsMax) throw new ReplayError(`${file} has more than ${streamsMax} streams.`);
    reports += 1;
  }
  if (reports === 0) throw new ReplayError(`${file} has no reports.`);
  return { file, runs, feedIds: [...feedIds], firstSecond: seconds.first, lastSecond: seconds.last, reports };
}

const readLine = (file: string, number: number, text: string): RecordedReport => {
  try {
    return readReport(text);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ReplayError(`${file}, line ${number}: not a report. ${why}`, { cause });
  }
};

/** The reports of a recording in the order of their seconds, those of one second in the order of the file. */
export async function* mergeRuns({ file, runs }: Pick<Recording, 'file' | 'runs'>): AsyncGenerator<RecordedReport> {
  const readers = runs.map((run) => reportsOf(file, run));
  try {
    const heads = await Promise.all(readers.map(async (reader) => (await reader.next()).value));
    for (;;) {
      let index = -1;
      for (let i = 0; i < heads.length; i += 1) {
        const [head, best] = [heads[i], heads[index]];
        if (head !== undefined && (best === undefined || head.second < best.second)) index = i;
      }
      const next = heads[index];
      if (next === undefined) return;
      yield next;
      heads[index] = (await readers[index]?.next())?.value;
    }
  } finally {
    await Promise.all(readers.map((reader) => reader.return(undefined)));
  }
}

async function* reportsOf(file: string, run: RecordedRun): AsyncGenerator<RecordedReport, undefined> {
  for await (const { text } of linesOf(file, run)) if (text.trim() !== '') yield readReport(text);
  return undefined;
}
