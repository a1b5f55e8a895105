import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { decodeFullReport, parseCatalog, parseSignerSets, verifyReport } from '@sealpost/protocol';
import { createNetwork } from '@sealpost/simulator';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand, type SampleOptions } from '../../sample-session.fixture.ts';

let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sealpost-simulate-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const run = (args: readonly string[], options?: SampleOptions) => runCommand(['simulate', ...args], options);

test('simulate: a range becomes three files that the protocol reads, and one line of JSON', async () => {
  const out = join(folder, 'deep', 'span');
  const span = ['--from', '2025-11-03T14:29:00Z', '--to', '1762180169', '--out', out];
  const { code, stdout, stderr } = await run([...span, '--seed', 'demo', '--json', '--workers', '0']);
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

test('simulate: wrong arguments exit with 2 and name the option', async () => {
  const { code, stdout, stderr } = await run(['--from', 'yesterday', '--out', folder]);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(/^error: --from has the value "yesterday", expected Unix seconds/);
});

test('simulate: a directory that cannot be created exits with 3', async () => {
  const { code, stderr } = await run(['--from', '-1s', '--workers', '0', '--out', '/dev/null/x']);
  expect([code, stderr]).toEqual([3, expect.stringMatching(/^error: .*\/dev\/null\/x/)]);
});

test('simulate: an interrupted run exits with the signal’s code and leaves no file', async () => {
  const out = join(folder, 'interrupted');
  const interruption = new AbortController();
  const ran = run(['--from', '-10d', '--out', out, '--workers', '0'], { interruption: interruption.signal });
  const started = async () => (await readdir(out).catch(() => [])).some((name) => name.startsWith('reports.ndjson'));
  await expect.poll(started).toBe(true);
  interruption.abort('SIGTERM');
  expect(await ran).toEqual({ code: 143, stdout: '', stderr: 'Interrupted. Nothing was written.\n' });
  expect(await readdir(out)).toEqual([]);
});

test('simulate: live reports are lines for people on a terminal, until the interruption', async () => {
  const interruption = new AbortController();
  const terminal = () => interruption.abort('SIGINT');
  const args = ['--live', '--streams', 'BTC/USD-Streams-CexPrice'];
  const { code, stdout } = await run(args, { interruption: interruption.signal, terminal });
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(
      /^\d\d:\d\d:\d\d {2}BTC\/USD-Streams-CexPrice +price [\d.]+ {2}bid [\d.]+ {2}ask [\d.]+ {2}2 signatures\n$/,
    ),
  ]);
});

test('simulate: live reports are NDJSON when piped, and end quietly when the reader closes the pipe', async () => {
  const bin = fileURLToPath(new URL('../../../bin/sealpost.js', import.meta.url));
  const child = spawn(process.execPath, [bin, 'simulate', '--live', '--streams', 'BTC/USD-Streams-CexPrice'], {
    cwd: folder,
  });
  const stderr = text(child.stderr);
  const [line] = await once(child.stdout, 'data');
  expect(Object.keys(JSON.parse(String(line)))).toContain('fullReport');
  child.stdout.destroy();
  expect(await once(child, 'exit')).toEqual([0, null]);
  expect(await stderr).toBe('');
});
