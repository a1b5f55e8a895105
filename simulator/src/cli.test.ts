import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, watch } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { decodeFullReport, parseCatalog, parseSignerSets, verifyReport } from '@sealpost/protocol';
import { afterAll, beforeAll, test } from 'vitest';
import { createNetwork } from './network.ts';

const bin = fileURLToPath(new URL('../bin/sealpost-sim.js', import.meta.url));
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sealpost-sim-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

// Tests are concurrent, because starting a process is most of their time.
const start = (args: readonly string[]): ChildProcess => spawn(process.execPath, [bin, ...args]);

const run = async (...args: string[]) => {
  const child = start(args);
  const [stdout, stderr, [code]] = await Promise.all([
    child.stdout === null ? '' : text(child.stdout),
    child.stderr === null ? '' : text(child.stderr),
    once(child, 'exit'),
  ]);
  return { code, stdout, stderr };
};

test.concurrent('a span becomes three files that the protocol reads, and one line of JSON', async ({ expect }) => {
  const out = join(folder, 'deep', 'span');
  const span = ['--from', '2025-11-03T14:29:00Z', '--to', '1762180169', '--out', out];
  const { code, stdout, stderr } = await run(...span, '--seed', 'demo', '--json', '--workers', '1');
  expect([code, stderr]).toEqual([0, '']);
  const summary = JSON.parse(stdout);
  expect(summary).toMatchObject({ out, networkType: 'testnet', seed: 'demo', from: 1_762_180_140, to: 1_762_180_169 });
  expect(summary).toMatchObject({ streams: 27, signaturesPerReport: 2 });
  expect((await readdir(out)).sort()).toEqual(['catalog.json', 'reports.ndjson', 'signers.json']);

  const read = async (name: string) => readFile(join(out, name), 'utf8');
  const streams = parseCatalog(JSON.parse(await read('catalog.json')));
  const signerSets = parseSignerSets(JSON.parse(await read('signers.json')));
  const lines = (await read('reports.ndjson')).trimEnd().split('\n');
  expect([streams.length, streams.filter(({ hidden }) => hidden).length, lines.length]).toEqual([
    27,
    1,
    summary.reports,
  ]);
  const { engine } = await createNetwork({ seed: 'demo' });
  for (const line of lines.slice(-30)) {
    const report = JSON.parse(line);
    expect(Object.keys(report)).toEqual(['feedID', 'validFromTimestamp', 'observationsTimestamp', 'fullReport']);
    expect(verifyReport(decodeFullReport(report.fullReport), signerSets, engine).ok).toBe(true);
  }
});

test.concurrent('wrong arguments end with 2 and name the option', async ({ expect }) => {
  const { code, stdout, stderr } = await run('--from', 'yesterday', '--out', folder);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(/^error: --from has the value "yesterday", expected Unix seconds/);
});

test.concurrent('help shows options and examples', async ({ expect }) => {
  const { code, stdout, stderr } = await run('--help');
  expect([code, stderr]).toEqual([0, '']);
  for (const part of ['--from <time>', '-f, --faulty <count>', '--late <feed,from,to,delay>', 'Examples:']) {
    expect(stdout).toContain(part);
  }
});

test.concurrent('a directory that cannot be made ends with 1', async ({ expect }) => {
  const { code, stderr } = await run('--from', '-1s', '--workers', '0', '--out', '/dev/null/x');
  expect([code, stderr]).toEqual([1, "error: ENOTDIR: not a directory, mkdir '/dev/null/x'\n"]);
});

test.concurrent('an interrupted span ends with the signal and leaves no file', async ({ expect }) => {
  const out = await mkdtemp(join(folder, 'interrupted-'));
  const child = start(['--from', '-10d', '--out', out, '--workers', '0']);
  for await (const { filename } of watch(out)) if (filename?.startsWith('reports.ndjson.partial')) break;
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([143, null]);
  expect(await readdir(out)).toEqual([]);
});

test.concurrent('live reports are NDJSON when piped, and end quietly when the reader leaves', async ({ expect }) => {
  const child = start(['--live', '--streams', 'BTC/USD-Streams-CexPrice']);
  const stderr = child.stderr === null ? '' : text(child.stderr);
  const [line] = child.stdout === null ? [] : await once(child.stdout, 'data');
  expect(Object.keys(JSON.parse(String(line)))).toContain('fullReport');
  child.stdout?.destroy();
  expect(await once(child, 'exit')).toEqual([0, null]);
  expect(await stderr).toBe('');
});
