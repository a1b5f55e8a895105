import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { acquireLock } from '@sealpost/server/runtime/process-lock';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { streamOfSchema } from '../../../../tests/support/exports/schema-reports.ts';
import { act, openRunningIngest, testStream } from '../../../../tests/support/running-ingest.ts';
import { runCommand } from '../../sample-session.fixture.ts';
import { filesOf, midnight, now, openExportSample, report, signerSets, wide } from './export-sample.fixture.ts';

const { running, run, newFolder, close } = await openExportSample();
afterAll(close);

const long = streamOfSchema(7);
const days = 3;
const perDay = 1_200; // more than a page
const oldest = midnight - days * 86_400;
const one = report(long, 7, oldest, 1);
// The bytes are those of one report: signed export does not look into them, and signing thousands takes long.
const copies = Array.from({ length: days * perDay }, (_, i) => {
  const ms = (oldest + Math.floor(i / perDay) * 86_400 + (i % perDay)) * 1_000;
  return { ...one, validFromMs: ms, observationsMs: ms };
});
const args = (out: string): readonly string[] => ['V7/USD', '--to', `${midnight - 10}`, '--out', out];
const contents = (out: string): string =>
  filesOf(out)
    .toSorted()
    .map((name) => readFileSync(join(out, name), 'utf8'))
    .join('');
let whole: string;

beforeAll(async () => {
  await running.store.reports.append(copies);
  whole = (await run(['V7/USD', '--to', `${midnight - 10}`])).stdout;
});

/** A signal that is aborted when it has been looked at so often. */
const abortAfter = (looks: number): AbortSignal => {
  const controller = new AbortController();
  let seen = 0;
  return Object.create(controller.signal, {
    aborted: {
      get: () => {
        seen += 1;
        if (seen === looks) controller.abort('SIGINT');
        return controller.signal.aborted;
      },
    },
    reason: { get: () => controller.signal.reason },
  });
};

test.each([1, 2, 4, 6, 8])('interrupted at look %i and run again, it has no duplicates or holes', async (looks) => {
  const out = newFolder();
  const first = await run(args(out), { interruption: abortAfter(looks) });
  expect([first.code, first.stderr]).toEqual([130, 'error: Interrupted. Run the command again to resume.\n']);
  expect(readdirSync(out).filter((name) => name.includes('partial'))).toEqual([]);
  const before = filesOf(out).length;
  const second = await run(args(out));
  expect(second.stderr).toMatch(
    // The two newest days are read again.
    new RegExp(
      `^Resuming the export in ${out}\\.\n[\\d,]+ reports of 1 stream in ${days - Math.max(0, before - 2)} files, `,
    ),
  );
  expect(contents(out) === whole).toBe(true);
  expect(filesOf(out)).toHaveLength(days);
});

test('an export with other arguments is rejected, each by name; a folder with other files too', async () => {
  const out = newFolder();
  await run(args(out));
  const changed = (...more: string[]) => run([...args(out).filter((_, i) => i > 0), ...more]);
  for (const [given, text] of [
    [['V7/USD', '--format', 'csv'], '--format was ndjson, now it is csv'],
    [['V7/USD', '--decoded'], '--decoded was not set, now it is set'],
    [['V7/USD', '--from', '1'], '--from was not set, now it is 1'],
    [['V8/USD'], 'streams was V7/USD, now it is V8/USD'],
    [['--all'], 'streams was V7/USD, now it is all streams'],
  ] as const)
    expect(await changed(...given), given.join(' ')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(text),
    });
  expect(contents(out) === whole).toBe(true);
  const foreign = newFolder();
  await run([wide, '--to', '5', '--out', foreign]);
  rmSync(join(foreign, '_sealpost-export.json'));
  writeFileSync(join(foreign, 'thesis.txt'), 'mine');
  expect(await run([wide, '--out', foreign])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('is not empty'),
  });
  expect(readdirSync(foreign)).toEqual(['thesis.txt']);
});

test('an export that ended before its first file makes way for one with other arguments', async () => {
  const [out, mine] = [newFolder(), newFolder()];
  for (const one of [out, mine]) {
    await run([...args(one), '--from', '1'], { interruption: abortAfter(1) });
    expect(readdirSync(one)).toEqual(['_sealpost-export.json']);
  }
  writeFileSync(join(out, '.V7-USD_2025-11-14.ndjson.1-1.partial'), 'of one that was killed');
  const { code, stderr } = await run(args(out));
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^[\d,]+ reports of 1 stream in 3 files, /)]);
  expect(contents(out) === whole).toBe(true);
  expect((await run([...args(out), '--from', '1'])).stderr).toContain('--from was not set, now it is 1');
  writeFileSync(join(mine, 'thesis.txt'), 'mine');
  expect(await run(args(mine))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('--from was 1, now it is not'),
  });
});

test('nothing is written outside of the folder, whatever its record names and wherever its links lead', async () => {
  const [outside, out] = [newFolder(), newFolder()];
  mkdirSync(outside);
  writeFileSync(join(outside, 'mine'), 'mine');
  await run(args(out), { interruption: abortAfter(6) });
  const record = join(out, '_sealpost-export.json');
  const { streams, ...rest } = JSON.parse(readFileSync(record, 'utf8'));
  writeFileSync(record, JSON.stringify({ ...rest, streams: [{ ...streams[0], name: `../${basename(outside)}/x` }] }));
  for (const name of filesOf(out)) rmSync(join(out, name));
  const file = `${basename(outside)}-x_2025-11-12.ndjson`;
  symlinkSync(join(outside, 'mine'), join(out, file));
  symlinkSync(join(outside, 'mine'), join(out, `.${file}.partial`));
  symlinkSync(join(outside, 'mine'), join(out, '.V7-USD_2025-11-13.ndjson.partial'));
  expect((await run(args(out))).code).toBe(0);
  expect(filesOf(out).every((name) => name.startsWith(`${basename(outside)}-x_`))).toBe(true);
  expect(contents(out) === whole).toBe(true);
  expect([readdirSync(outside), readFileSync(join(outside, 'mine'), 'utf8')]).toEqual([['mine'], 'mine']);
});

test('a file that is missing or was cut is written again if it is one of the two newest; a record must be one', async () => {
  const out = newFolder();
  await run(args(out));
  const [, second, third] = filesOf(out).toSorted();
  rmSync(join(out, third ?? ''));
  truncateSync(join(out, second ?? ''), 10);
  expect((await run(args(out))).code).toBe(0);
  expect(contents(out) === whole).toBe(true);
  const record = join(out, '_sealpost-export.json');
  for (const text of ['not a record', '{}', '{"from":0,"streams":[{}]}']) {
    writeFileSync(record, text);
    const { code, stderr } = await run(args(out));
    expect([code, stderr]).toEqual([
      1,
      `error: ${record} is not the record of an export. Export into another folder.\n`,
    ]);
  }
});

test('run again after it was complete, it adds newer reports and leaves complete days alone', async () => {
  const out = newFolder();
  const stream = streamOfSchema(9);
  const read = () => run(['V9/USD', '--out', out]);
  const lines = () => contents(out).split('\n').length - 1;
  await read();
  expect(filesOf(out)).toEqual(['V9-USD_2025-11-14.ndjson', 'V9-USD_2025-11-15.ndjson']);
  expect(lines()).toBe(8);
  await running.store.reports.append([report(stream, 9, midnight + 7_200, 3)]);
  expect((await read()).stderr).toContain('9 reports of 1 stream in 2 files'); // late reports of the first day could have come
  await running.store.reports.append([report(stream, 9, now - 5, 3)]);
  expect((await read()).stderr).toContain('10 reports of 1 stream in 3 files');
  expect((await read()).stderr).toContain('8 reports of 1 stream in 2 files');
  expect(lines()).toBe(10);
});

test.each([
  ['lag behind', midnight + 30 * 86_400],
  ['are ahead of', midnight - 30 * 86_400],
])('reports that %s the clock are added by the next run', async (_, nowSeconds) => {
  const stream = streamOfSchema(12);
  const other = await openRunningIngest([testStream(stream, { name: 'V12/USD' })], signerSets, () => now * 1_000);
  const out = newFolder();
  const one = report(stream, 12, midnight, 0);
  const add = (...seconds: readonly number[]) =>
    other.store.reports.append(
      seconds.map((second) => {
        const ms = (midnight + second) * 1_000;
        return { ...one, validFromMs: ms, observationsMs: ms };
      }),
    );
  const read = async (options: { readonly interruption?: AbortSignal } = {}): Promise<readonly number[]> => {
    const command = ['export', 'V12/USD', '--out', out, '--store', other.folder];
    await runCommand(command, { nowMs: nowSeconds * 1_000, ...options });
    const lines = contents(out).split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line).observationsTimestamp - midnight);
  };
  try {
    await add(0, 10);
    expect(await read()).toEqual([0, 10]);
    await add(20, 86_400);
    expect(await read({ interruption: abortAfter(1) })).toEqual([0, 10]);
    expect(await read()).toEqual([0, 10, 20, 86_400]);
    await add(86_399, 86_410);
    expect(await read()).toEqual([0, 10, 20, 86_399, 86_400, 86_410]);
  } finally {
    await other.close();
  }
});

test('an export that fails before it begins leaves no folder', async () => {
  const out = newFolder();
  expect((await run(['NOPE/USD', '--out', join(out, 'a', 'b')])).code).not.toBe(0);
  expect(existsSync(out)).toBe(false);
});

test('an export that was killed while it took the lock is begun again', async () => {
  const out = newFolder();
  mkdirSync(out);
  for (const name of ['0a1b2c3d', 'turn']) {
    writeFileSync(join(out, `_sealpost-export.lock.${name}`), '{"pid":1');
    utimesSync(join(out, `_sealpost-export.lock.${name}`), 1, 1);
  }
  expect(await run(args(out))).toMatchObject({ code: 0 });
  expect(contents(out)).toBe(whole);
});

test('a renamed stream is continued under its first name', async () => {
  const out = newFolder();
  const stream = streamOfSchema(10);
  const csv = ['V10/USD', '--format', 'csv', '--out', out];
  expect((await run(csv, { interruption: abortAfter(1) })).code).toBe(130);
  const rename = (name: string) =>
    running.store.admin.update('stream', [stream], () => [testStream(stream, { name })], act);
  await rename('RENAMED/USD');
  try {
    expect((await run(csv)).code).toBe(0);
    expect(filesOf(out)).toEqual(['V10-USD_2025-11-14.csv', 'V10-USD_2025-11-15.csv']);
    expect(contents(out)).not.toContain('RENAMED');
  } finally {
    await rename('V10/USD');
  }
});

test('a second export into a folder is rejected while one runs; the lock of a dead one is not', async () => {
  const out = newFolder();
  await run([wide, '--to', '5', '--out', out]);
  const lock = join(out, '_sealpost-export.lock');
  expect(existsSync(lock)).toBe(false);
  const unlock = await acquireLock(lock, () => new Error('taken'));
  expect(await run([wide, '--to', '5', '--out', out])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`is running: process ${process.pid}`),
  });
  writeFileSync(lock, JSON.stringify({ ...JSON.parse(readFileSync(lock, 'utf8')), pid: 2 ** 22 + 1 }));
  expect((await run([wide, '--to', '5', '--out', out])).code).toBe(0);
  expect(existsSync(lock)).toBe(false);
  unlock();
});

test('retention that deletes between two runs loses no exported report', async () => {
  const stream = streamOfSchema(12);
  const other = await openRunningIngest([testStream(stream, { name: 'V12/USD' })], signerSets, () => now * 1_000);
  const out = newFolder();
  const read = (nowSeconds: number) =>
    runCommand(['export', 'V12/USD', '--out', out, '--store', other.folder], { nowMs: nowSeconds * 1_000 });
  try {
    const one = report(stream, 12, midnight, 0);
    const at = (second: number) => ({ ...one, validFromMs: second * 1_000, observationsMs: second * 1_000 });
    await other.store.reports.append(Array.from({ length: 400 }, (_, i) => at(midnight + i)));
    expect((await read(midnight + 250)).code).toBe(0);
    await other.store.reports.append([at(midnight + 86_400)]);
    const before = contents(out);
    while ((await other.store.reports.trim({ beforeMs: (midnight + 200) * 1_000, bytesMax: 1e12 })).more);
    const { code, stderr } = await read(midnight + 86_500);
    expect([code, stderr]).toEqual([
      1,
      `Resuming the export in ${out}.\nerror: The source has lost reports of V12-USD_2025-11-15.ndjson since it was written. It is kept as it was, without later reports of that day.\n1 report of 1 stream in 1 file, ${out}.\n`,
    ]);
    expect(contents(out).startsWith(before)).toBe(true);
  } finally {
    await other.close();
  }
});

test('while retention deletes, an export has a whole stretch of reports', async () => {
  const stream = streamOfSchema(12);
  const other = await openRunningIngest([testStream(stream, { name: 'V12/USD' })], signerSets, () => now * 1_000);
  const out = newFolder();
  try {
    const one = report(stream, 12, midnight, 0);
    const seconds = Array.from({ length: 5_000 }, (_, i) => midnight + i);
    await other.store.reports.append(
      seconds.map((second) => ({ ...one, validFromMs: second * 1_000, observationsMs: second * 1_000 })),
    );
    const deleting = (async () => {
      for (let i = 0; i < 5_000; i += 250) {
        const retention = { beforeMs: (midnight + i) * 1_000, bytesMax: 1e12 };
        while ((await other.store.reports.trim(retention)).more);
      }
    })();
    const reading = runCommand(['export', '--all', '--out', out, '--store', other.folder], { nowMs: now * 1_000 });
    const [{ code }] = await Promise.all([reading, deleting]);
    const found = contents(out)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).observationsTimestamp as number);
    expect([code, new Set(found).size]).toEqual([0, found.length]);
    expect(found).toEqual(found.toSorted());
    expect(found.at(-1)).toBe(midnight + 4_999);
  } finally {
    await other.close();
  }
});

test('while reports are written, an export has a whole stretch of them', async () => {
  const stream = streamOfSchema(6);
  const out = newFolder();
  const added = Array.from({ length: 90 }, (_, i) => report(stream, 6, midnight + 1_000 + i, i));
  const writing = (async () => {
    for (let i = 0; i < added.length; i += 30) await running.store.reports.append(added.slice(i, i + 30));
  })();
  const [{ code }] = await Promise.all([run(['V6/USD', '--out', out]), writing]);
  const seconds = contents(out)
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).observationsTimestamp as number)
    .filter((second) => second >= midnight + 1_000);
  expect([code, seconds]).toEqual([0, seconds.map((_, i) => midnight + 1_000 + i)]);
});
