import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  decodeFullReport,
  decodeReportBody,
  encodeReportBody,
  headlinePriceOf,
  type ReportBody,
  type ReportJson,
  verifyReport,
} from '@sealpost/protocol';
import { allSpecs, createNetwork, createScenarioSimulation } from '@sealpost/simulator';
import { afterAll, expect, test } from 'vitest';
import { undecodedBody, undecodedLayouts } from '../../../tests/support/exports/undecoded-bodies.ts';
import { createSignedReports, millisecondStream } from '../../../tests/support/signed-reports.ts';
import { catalogOf } from './catalog.ts';
import { mergeRuns, scanRecording } from './recording.ts';
import { openReplay } from './replay.ts';
import { shiftBody } from './shift.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-replay-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const start = Date.parse('2025-11-03T14:29:00Z') / 1_000;

const write = (name: string, lines: readonly unknown[]): string => {
  const file = join(folder, name);
  writeFileSync(file, lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'));
  return file;
};
const bodyOf = (line: string) => decodeReportBody(decodeFullReport(JSON.parse(line).fullReport).body);

/** Every schema version, one stream after the other, as `sealpost export` writes several. */
const recorded = async (): Promise<readonly ReportJson[]> => {
  const simulation = await createScenarioSimulation({
    seed: 'elsewhere',
    streams: allSpecs(),
    startSecond: start,
    effects: [],
  });
  const reports = Array.from({ length: 2 }, (_, i) => [...simulation.deliverAt(start + 60 * i)]).flat();
  const slow = [...simulation.deliverAt(start + 30), ...reports].map(({ report }) => report);
  return slow.sort((a, b) => (a.feedID < b.feedID ? -1 : 1) || a.observationsTimestamp - b.observationsTimestamp);
};

test('replay: reports of every stream are moved in time, keep their prices, and are signed by the sandbox’s oracles', async () => {
  const reports = await recorded();
  const file = write('all.ndjson', [...reports.map((report) => ({ report })), '']);
  const recording = await scanRecording(file);
  expect(recording.reports).toBe(reports.length);
  expect(recording.runs.length).toBeGreaterThan(2);
  const shiftSeconds = 1_000_000;
  const replay = await openReplay({ file, runs: recording.runs, seed: 'mine', shiftSeconds, effects: [] });
  const lines = await replay.linesOf(recording.firstSecond + shiftSeconds, recording.lastSecond + shiftSeconds);
  expect(
    await replay.linesOf(recording.lastSecond + shiftSeconds + 1, recording.lastSecond + 2 * shiftSeconds),
  ).toEqual([]);
  await replay.close();
  const { signerSet, engine } = await createNetwork({ seed: 'mine' });
  const sets = new Map([[signerSet.configDigest, signerSet]]);
  const seconds = lines.map((line) => JSON.parse(line).observationsTimestamp);
  expect(seconds).toEqual(reports.map((one) => one.observationsTimestamp + shiftSeconds).sort((a, b) => a - b));
  for (const line of lines) {
    expect(verifyReport(decodeFullReport(JSON.parse(line).fullReport), sets, engine).ok).toBe(true);
    const after = bodyOf(line);
    const [before] = reports
      .filter(
        (one) =>
          one.feedID === after.feedId && one.observationsTimestamp + shiftSeconds === after.observationsTimestamp,
      )
      .map((one) => bodyOf(JSON.stringify(one)));
    expect(before && headlinePriceOf(before)).toBe(headlinePriceOf(after));
    if (before?.version === 11 && after.version === 11)
      expect(after.lastSeenTimestampNs - before.lastSeenTimestampNs).toBe(1_000_000_000_000_000n);
    if (before?.version === 5 && after.version === 5)
      expect([after.duration, after.timestamp - before.timestamp]).toEqual([86_400, shiftSeconds]);
    if (before?.version !== 1 && after.version !== 1)
      expect(after.expiresAt).toBe((before?.expiresAt ?? 0) + shiftSeconds);
  }
});

test('replay: millisecond streams keep their milliseconds, silences leave reports out, and a rotation changes the signers', async () => {
  const { report } = await createSignedReports();
  const feedId = millisecondStream(1);
  const at = start * 1_000;
  const lines = [100, 1_250, 2_500, 3_750].map((ms) => {
    const { fullReport } = report(feedId, at + ms - 50, at + ms);
    return { fullReport: `0x${Buffer.from(fullReport).toString('hex')}` };
  });
  const file = write('fine.ndjson', lines);
  const { runs } = await scanRecording(file);
  const replay = await openReplay({ file, runs, seed: 'mine', shiftSeconds: 10, effects: [] });
  await replay.add([
    { kind: 'silence', from: start + 11, to: start + 12, feedIds: [feedId], backfill: false },
    { kind: 'rotation', from: start + 13 },
  ]);
  const replayed = (await replay.linesOf(start + 10, start + 20)).map((line) =>
    decodeFullReport(JSON.parse(line).fullReport),
  );
  expect(replayed.map(({ body }) => decodeReportBody(body).observationsTimestamp - at)).toEqual([
    10_100, 12_500, 13_750,
  ]);
  expect(new Set(replayed.map(({ context }) => context.configDigest)).size).toBe(2);
  await replay.close();
});

test.each(undecodedLayouts)('replay: %s is moved by its head, and keeps the rest', async (layout) => {
  const at = { validFrom: start, observations: start + 4 };
  const { sign } = await createNetwork({ seed: 'elsewhere' });
  const file = write('undecoded.ndjson', [{ fullReport: sign(undecodedBody(layout, at), 1) }]);
  const { runs } = await scanRecording(file);
  const replay = await openReplay({ file, runs, seed: 'mine', shiftSeconds: 100, effects: [] });
  const [line = ''] = await replay.linesOf(start, start + 200);
  await replay.close();
  expect(JSON.parse(line)).toMatchObject({ validFromTimestamp: start + 100, observationsTimestamp: start + 104 });
  const moved = undecodedBody(layout, { validFrom: start + 100, observations: start + 104 });
  expect(decodeFullReport(JSON.parse(line).fullReport).body).toBe(moved);
});

test('replay: effects are in force by their time, whatever the order in which they were set', async () => {
  const { report } = await createSignedReports();
  const feedId = millisecondStream(3);
  const lines = [0, 1, 2, 3, 4].map((second) => {
    const { fullReport } = report(feedId, (start + second) * 1_000, (start + second) * 1_000);
    return { fullReport: `0x${Buffer.from(fullReport).toString('hex')}` };
  });
  const file = write('order.ndjson', lines);
  const { runs } = await scanRecording(file);
  const replay = await openReplay({ file, runs, seed: 'mine', shiftSeconds: 0, effects: [] });
  await replay.add([{ kind: 'resumption', from: start + 3, feedIds: [feedId] }]);
  await replay.add([{ kind: 'silence', from: start + 1, to: start + 9, feedIds: [feedId], backfill: false }]);
  const seconds = (await replay.linesOf(start, start + 4)).map((line) => bodyOf(line).observationsTimestamp);
  expect(seconds).toEqual([0, 3, 4].map((second) => (start + second) * 1_000));
  await replay.close();
});

test('replay: runs are merged by time, whatever their number, and a file that is no recording is named with its line', async () => {
  const { report } = await createSignedReports();
  const feedId = millisecondStream(2);
  const line = (second: number) => ({
    fullReport: `0x${Buffer.from(report(feedId, second * 1_000, second * 1_000).fullReport).toString('hex')}`,
  });
  const file = write('mixed.ndjson', [5, 7, 7, 1, 9, 3].map(line));
  const recording = await scanRecording(file);
  expect(recording).toMatchObject({ firstSecond: 1, lastSecond: 9, reports: 6, feedIds: [feedId] });
  expect(recording.runs.length).toBe(3);
  const seconds: number[] = [];
  for await (const { second } of mergeRuns(recording)) seconds.push(second);
  expect(seconds).toEqual([1, 3, 5, 7, 7, 9]);
  await expect(scanRecording(write('bad.ndjson', [line(1), '{"fullReport":"0x12"}']))).rejects.toThrow(
    /bad\.ndjson, line 2: not a report\./,
  );
  await expect(scanRecording(write('text.ndjson', ['hello']))).rejects.toThrow(/text\.ndjson, line 1: not a report\./);
  await expect(scanRecording(write('empty.ndjson', ['', '']))).rejects.toThrow(/empty\.ndjson has no reports\./);
  await expect(scanRecording(write('long.ndjson', ['x'.repeat(200_000)]))).rejects.toThrow(
    /has a line of more than 16384 bytes/,
  );
  expect(catalogOf([feedId], [])).toMatchObject([{ feedId, name: '100300000000/USD-Streams-V3', status: 'live' }]);
});

test('replay: a time that would be later than its field can say is the latest that it can', async () => {
  const bodies = (await recorded()).map(({ fullReport }) => decodeReportBody(decodeFullReport(fullReport).body));
  const latest = { expiresAt: 2 ** 32 - 1, lastUpdateTimestamp: 2n ** 64n - 1n };
  const body = bodies.find((one) => 'lastUpdateTimestamp' in one) as ReportBody; // of several schemas
  const late = { ...body, expiresAt: latest.expiresAt - 1, lastUpdateTimestamp: latest.lastUpdateTimestamp - 1n };
  expect(shiftBody(encodeReportBody(late as ReportBody), 100).fields).toMatchObject(latest); // the same fields
});
