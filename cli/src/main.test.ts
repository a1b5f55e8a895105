// The real binary, as a user starts it. Starting a process is most of the time here, so each test walks through a whole flow.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { decodeFullReport, parseCatalog } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';

const sealpost = fileURLToPath(new URL('../bin/sealpost.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'sealpost-cli-'));
const minute = join(folder, 'minute');
const store = join(folder, 'store');
const from = Math.floor(Date.now() / 1_000) - 100;
const [btc, eth, twap] = ['BTC/USD-Streams-CexPrice', 'ETH/USD-Streams-CexPrice', 'ETH/USD-Streams-TWAP'];
const reportsFile = join(minute, 'reports.ndjson');

const start = (bin: string, args: readonly string[]): ChildProcess =>
  spawn(process.execPath, [bin, ...args], { cwd: folder, env: { PATH: process.env.PATH, SEALPOST_STORE: store } });

const finish = async (child: ChildProcess) => {
  const [stdout, stderr, [code]] = await Promise.all([
    child.stdout === null ? '' : text(child.stdout),
    child.stderr === null ? '' : text(child.stderr),
    once(child, 'exit'),
  ]);
  return { code, stdout, stderr };
};

const run = (...args: string[]) => finish(start(sealpost, args));
const json = async (...args: string[]) => {
  const { code, stdout, stderr } = await run(...args, '--json');
  expect([code, stderr], args.join(' ')).toEqual([0, '']);
  return JSON.parse(stdout);
};

type Line = { readonly feedID: string; readonly observationsTimestamp: number; readonly fullReport: string };
const readLines = (path: string): readonly string[] => readFileSync(path, 'utf8').trimEnd().split('\n');

beforeAll(async () => {
  const span = ['--from', `${from}`, '--to', `${from + 60}`, '--out', minute, '--workers', '0'];
  const what = ['--streams', [btc, eth, twap].join(','), '--gap', `${eth},${from + 20},${from + 29}`];
  expect((await run('simulate', ...span, ...what)).code).toBe(0);
  expect((await run('stream', 'import', join(minute, 'catalog.json'))).stdout).toBe(
    '3 added, 0 changed, 0 unchanged.\n',
  );
  expect((await run('signers', 'import', join(minute, 'signers.json'))).stdout).toBe(
    '1 added, 0 changed, 0 unchanged.\n',
  );
  const loaded = await run('ingest', reportsFile);
  expect([loaded.code, loaded.stderr]).toEqual([0, '']);
  expect(loaded.stdout).toMatch(new RegExp(`^ {2}stored +${readLines(reportsFile).length}$`, 'm'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('cli: a minute is ingested, counted, verified, and exported unchanged', async () => {
  const lines = readLines(reportsFile);
  const { feedId } = parseCatalog(JSON.parse(readFileSync(join(minute, 'catalog.json'), 'utf8'))).find(
    ({ name }) => name === eth,
  ) ?? { feedId: '' };
  const own = lines.filter((line) => line.includes(feedId));
  const [stats, check, exported, csv, coverage] = await Promise.all([
    json('store', 'stats'),
    json('store', 'verify', '--signatures'),
    run('export', eth),
    run('export', eth, '--format', 'csv', '--from', `${from + 30}`),
    json('coverage', eth, '--from', `${from}`, '--to', `${from + 60}`),
  ]);
  expect(stats).toMatchObject({ streams: 3, reports: lines.length, quarantined: 0 });
  expect(check).toMatchObject({ reports: lines.length, streams: 3, problemCount: 0, complete: true });
  expect(exported.stdout).toBe(`${own.join('\n')}\n`);
  expect(csv.stdout.trimEnd().split('\n').length).toBe(1 + 31);
  expect(coverage).toMatchObject({
    reports: 51,
    coveredSeconds: 51,
    gaps: [{ from: from + 20, to: from + 29, seconds: 10 }],
    medianIntervalMs: 1_000,
  });
});

test('cli: a second load finds duplicates only; altered and unknown reports are rejected and kept, and the exit code is 1', async () => {
  const lines = readLines(reportsFile);
  const again = await run('ingest', reportsFile, '--json');
  expect(again.code).toBe(0);
  expect(JSON.parse(again.stdout.trimEnd().split('\n').at(-1) ?? '').summary).toMatchObject({
    lines: lines.length,
    stored: 0,
    duplicate: lines.length,
    refused: 0,
  });
  const mixed = join(folder, 'mixed.ndjson');
  const first: Line = JSON.parse(lines[0] ?? '');
  const altered = { fullReport: first.fullReport.replace(/.{2}$/, (byte) => (byte === '00' ? '01' : '00')) };
  const forged = { fullReport: alterPrice(first.fullReport) };
  writeFileSync(mixed, [lines[0], 'nonsense', JSON.stringify(altered), JSON.stringify(forged), ''].join('\n'));
  const refused = await run('ingest', mixed);
  expect([refused.code, refused.stderr]).toEqual([1, '']);
  expect(refused.stdout).toMatch(
    /^ {2}duplicate +1\n {2}rejected +3\n +1 {2}malformed_line, first on line 2: The line is not/m,
  );
  const listed = (await run('quarantine', 'list', '--json')).stdout.trimEnd().split('\n');
  expect(listed.map((line) => JSON.parse(line).code)).toContain('altered_report');
  expect(listed.length).toBe(3);
});

/** The report with the last digit of its price changed: the word after the six of the head. */
const alterPrice = (fullReport: string): string => {
  const { body } = decodeFullReport(fullReport);
  const at = 2 + 7 * 64 - 1;
  const digit = body[at] === '0' ? '1' : '0';
  return fullReport.replace(body.slice(2), `${body.slice(2, at)}${digit}${body.slice(at + 1)}`);
};

test('cli: an interruption stops reading, finishes the work in progress, prints the summary and exits with 130', async () => {
  const child = start(sealpost, ['ingest', '-', '--json']);
  child.stdin?.on('error', () => {}); // the command stops reading before all of it is written
  child.stdin?.write(`${readFileSync(reportsFile, 'utf8').repeat(50)}{"fullRep`);
  const finished = finish(child);
  await Promise.race([child.stdout && once(child.stdout, 'data'), finished]);
  child.kill('SIGINT');
  const { code, stdout, stderr } = await finished;
  expect([code, stderr]).toEqual([130, '']);
  const results = stdout.trimEnd().split('\n');
  expect(JSON.parse(results.at(-1) ?? '').summary).toMatchObject({
    lines: results.length - 1,
    duplicate: results.length - 1,
    refused: 0,
    interrupted: true,
  });
});

test('cli: a reader that closes the pipe ends a command quietly, wrong usage exits with 2', async () => {
  const child = start(sealpost, ['export', btc]);
  child.stdout?.destroy();
  const left = Promise.all([child.stderr && text(child.stderr), once(child, 'exit')]);
  const [[message, [code]], wrong, help] = await Promise.all([left, run('ingest', '--nonsense'), run('--help')]);
  expect([code, message]).toEqual([0, '']);
  expect([wrong.code, wrong.stdout, wrong.stderr]).toEqual([
    2,
    '',
    "error: unknown option '--nonsense'. See: sealpost ingest --help.\n",
  ]);
  expect([help.code, help.stderr]).toEqual([0, '']);
  expect(help.stdout).toMatch(/Exit codes:\n {2}0 +done/);
});

test.runIf(existsSync('/dev/full'))('a message that cannot be written ends no command', async () => {
  const full = openSync('/dev/full', 'w');
  const child = spawn(process.execPath, [sealpost, 'export', 'NOPE', '--store', store], {
    cwd: folder,
    stdio: ['ignore', 'ignore', full],
  });
  const [code] = await once(child, 'exit');
  closeSync(full);
  expect(code).toBe(2);
});

test.runIf(existsSync('/dev/full'))(
  'output that cannot be written is an error: help on a full disk, and a short write',
  async () => {
    const full = openSync('/dev/full', 'w');
    const child = spawn(process.execPath, [sealpost, '--help'], { cwd: folder, stdio: ['ignore', full, 'pipe'] });
    const [message, [code]] = await Promise.all([child.stderr && text(child.stderr), once(child, 'exit')]);
    closeSync(full);
    expect([code, message]).toEqual([
      3,
      'error: No space left on the disk that is written to. Free some, then run the command again.\n',
    ]);
    // Files may have 1 KiB: the system call writes so much and says so, only the next one fails.
    const limited = 'ulimit -f 1; exec "$0" "$1" completion bash > "$2"';
    const shell = spawn('bash', ['-c', limited, process.execPath, sealpost, join(folder, 'completion.sh')], {
      cwd: folder,
      env: { PATH: process.env.PATH, TSX_DISABLE_CACHE: '1' },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const [reason, [shortCode]] = await Promise.all([shell.stderr && text(shell.stderr), once(shell, 'exit')]);
    expect([shortCode, reason]).toEqual([3, 'error: EFBIG: file too large, write.\n']);
  },
);
