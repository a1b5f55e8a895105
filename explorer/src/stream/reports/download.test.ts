import { SealpostError } from '@sealpost/client';
import type { ReportJson } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import vectors from '../../../../protocol/src/vectors/reports.json' with { type: 'json' };
import { type Chunks, LoadingError } from '../../state/code/chunks.ts';
import { type DownloadFormat, type DownloadProgress, fileNameOf, openDownload } from './download.ts';

const vector = vectors.reports.find(({ name, version }) => version === 3 && !name.includes('negative'));
if (vector === undefined) throw new Error('no vector of version 3');
const { fullReport, decoded } = vector;
const second = Number(decoded.observationsTimestamp);
const { signal } = new AbortController();
const chunks: Chunks = { load: (load) => load() };

/** The report of the vector; another `fullReport` makes it another report, which cannot be decoded. */
const reportOf = (change = ''): ReportJson =>
  ({
    feedID: decoded.feedId,
    validFromTimestamp: second,
    observationsTimestamp: second,
    fullReport: fullReport + change,
  }) as ReportJson; // hex in the vector

type Step = readonly ReportJson[] | Error;

/** A client that gives these pages, one call after another; an error ends a call. */
const clientOf = (calls: readonly (readonly Step[])[]) => {
  const starts: number[] = [];
  return {
    starts,
    async *pages(_: string, { from }: { readonly from: number }) {
      const steps = calls[starts.length] ?? [];
      starts.push(from);
      for (const step of steps) {
        if (step instanceof Error) throw step;
        yield { reports: step, more: true, nextStartTimestamp: 0, details: {} as never }; // not read
      }
    },
  };
};

const planOf = (format: DownloadFormat = 'csv') =>
  ({ feedId: decoded.feedId, name: 'ETH/USD', from: second - 9, to: second, format }) as const;

const textOf = (parts: readonly (Uint8Array | string)[]): string => parts.map(String).join('');

test('download: a CSV file has a header and every report once, exactly', async () => {
  const download = await openDownload(planOf(), async () => {}, chunks);
  const file = await download.run(clientOf([[[reportOf()], [reportOf()]]]), () => {}, signal);
  const [header, row, end] = textOf(file.parts).split('\n');
  expect(header).toMatch(/^name,feedID,version,validFromTimestamp,.*,price,bid,ask$/);
  expect(row).toContain(`ETH/USD,${decoded.feedId},3,`);
  expect([end, file.reports, file.skipped]).toEqual(['', 1, 0]);
});

test('download: a rate limit is waited for as long as the server says, and nothing is read twice', async () => {
  const limited = new SealpostError('rate_limited', 'Wait.', { status: 429, details: { retryAfterSeconds: 7 } });
  const [waits, told]: [number[], DownloadProgress[]] = [[], []];
  const download = await openDownload(planOf(), async (ms) => void waits.push(ms), chunks);
  const client = clientOf([[limited], [[reportOf()], limited], [[reportOf()]]]);
  const file = await download.run(client, (progress) => told.push(progress), signal);
  expect([waits, client.starts, file.reports]).toEqual([[7_000, 7_000], [second - 9, second - 9, second], 1]);
  expect(told).toContainEqual({ reports: 0, share: 0, waitSeconds: 7 });
  expect(told.at(-1)).toEqual({ reports: 1, share: 1, waitSeconds: undefined });
});

test('download: after another failure the same download continues where it stopped', async () => {
  const failure = new SealpostError('network_error', 'Gone.', {});
  const download = await openDownload(planOf(), async () => {}, chunks);
  const client = clientOf([[[reportOf()], failure], [[reportOf()]]]);
  await expect(download.run(client, () => {}, signal)).rejects.toBe(failure);
  const file = await download.run(client, () => {}, signal);
  expect([file.reports, client.starts]).toEqual([1, [second - 9, second]]);
});

test('download: a report that cannot be decoded is counted and left out', async () => {
  const download = await openDownload(planOf(), async () => {}, chunks);
  const file = await download.run(clientOf([[[reportOf(), { ...reportOf(), fullReport: '0x00' }]]]), () => {}, signal);
  expect([file.reports, file.skipped]).toEqual([1, 1]);
});

test('download: an aborted one leaves no file', async () => {
  const abort = new AbortController();
  abort.abort();
  const download = await openDownload(planOf(), async () => {}, chunks);
  await expect(download.run(clientOf([[[reportOf()]]]), () => {}, abort.signal)).rejects.toThrow();
});

test('download: a Parquet file begins and ends with its mark', async () => {
  const download = await openDownload(planOf('parquet'), async () => {}, chunks);
  const { parts } = await download.run(clientOf([[[reportOf()]]]), () => {}, signal);
  const text = parts.map((part) => (typeof part === 'string' ? part : new TextDecoder('latin1').decode(part))).join('');
  expect([text.slice(0, 4), text.slice(-4)]).toEqual(['PAR1', 'PAR1']);
});

test('download: a library that does not arrive is reported; CSV needs none', async () => {
  const lost: Chunks = { load: () => Promise.reject(new LoadingError('offline')) };
  await expect(openDownload(planOf('parquet'), async () => {}, lost)).rejects.toThrow(LoadingError);
  await openDownload(planOf('csv'), async () => {}, lost);
});

test('download: too many reports name the last second that fits', async () => {
  const page = [reportOf(), { ...reportOf(), fullReport: fullReport.toUpperCase().replace('X', 'x') as `0x${string}` }]; // hex in the vector
  const whole = await openDownload(planOf(), async () => {}, chunks, 2);
  expect((await whole.run(clientOf([[page]]), () => {}, signal)).reports).toBe(2);
  const download = await openDownload(planOf(), async () => {}, chunks, 1);
  await expect(download.run(clientOf([[page]]), () => {}, signal)).rejects.toThrow(
    `The range has more than 1 reports. End it at ${new Date((second - 1) * 1_000).toISOString().slice(0, 19)}Z or earlier`,
  );
});

test('download: the name of the file has stream and range', () => {
  const day = { ...planOf(), from: 1_794_700_800, to: 1_794_787_199 };
  expect(fileNameOf(day)).toBe('ETH-USD_2026-11-15T00-00-00Z_2026-11-15T23-59-59Z.csv');
});
