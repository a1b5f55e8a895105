import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openRunningIngest, type RunningIngest, testStream } from '../../tests/support/running-ingest.ts';
import { createSignedReports, millisecondStream, secondStream } from '../../tests/support/signed-reports.ts';
import { loadCommands } from './commands/command-table.ts';
import { createProgram } from './program.ts';
import { runCommand } from './sample-session.fixture.ts';
import type { Session } from './session.ts';

const { report, signerSets } = await createSignedReports();
const [stream, fine, empty, now] = [secondStream(1), millisecondStream(2), secondStream(3), 1_763_200_000];
const folder = mkdtempSync(join(tmpdir(), 'sealpost-program-'));
let running: RunningIngest;

beforeAll(async () => {
  running = await openRunningIngest(
    [stream, fine, empty].map((feedId) => testStream(feedId)),
    signerSets,
    () => now * 1_000,
  );
  await running.store.reports.append([
    report(stream, now - 100, now - 91),
    report(stream, now - 80, now - 71, 123_456_789_012_345_678_901_234_567_890n),
    ...Array.from({ length: 1_500 }, (_, i) => report(fine, (now - 9) * 1_000 + 2 * i, (now - 9) * 1_000 + 2 * i + 1)),
  ]);
});
afterAll(async () => {
  await running.close();
  rmSync(folder, { recursive: true, force: true });
});

// This keeps the store open for writing, as a server would.
const run = (...args: string[]) => runCommand([...args, '--store', running.folder], { nowMs: now * 1_000 });

/** The words of every command that can be run: those without others below them, and those with options of their own. */
const leaves = (command: Command, words: readonly string[] = []): readonly (readonly string[])[] => [
  ...(command.commands.length === 0 || (words.length > 0 && command.options.length > 0) ? [words] : []),
  ...command.commands.flatMap((child) => leaves(child, [...words, child.name()])),
];
const commands = leaves(createProgram({} as Session, await loadCommands())); // building the commands asks nothing of a session

test('program: every command has help with examples and --json', async () => {
  expect(commands.length).toBe(63);
  for (const words of commands) {
    const { code, stdout, stderr } = await runCommand([...words, '--help']);
    expect([code, stderr], words.join(' ')).toEqual([0, '']);
    expect(stdout).toMatch(new RegExp(`^Usage: sealpost ${words.join(' ')} \\[options\\]`));
    expect(stdout).toMatch(/^ {2}--json /m);
    expect(stdout).toMatch(
      new RegExp(`Examples:\n(.+\n)*? {4}(\\w+=\\w+ |.*\\| |.*&& |.*<\\()?sealpost ${words.join(' ')}`),
    );
  }
});

test('program: docs/cli.md has a heading for exactly these commands', () => {
  const document = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8');
  const headings = [...document.matchAll(/^### `sealpost ([a-z ]+)/gm)].map(([, words]) => words?.trim());
  expect(headings.sort()).toEqual(commands.map((words) => words.join(' ')).sort());
});

test('program: bad usage is one line on stderr and 2', async () => {
  const refusal = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(...args);
    return [code, stdout, stderr];
  };
  expect(await refusal('ingest')).toEqual([
    2,
    '',
    "error: missing required argument 'FILE'. See: sealpost ingest --help.\n",
  ]);
  expect(await refusal('store', 'stat')).toEqual([
    2,
    '',
    "error: unknown command 'stat' (Did you mean stats?). See: sealpost store --help.\n",
  ]);
  expect(await refusal('ingest', '/nowhere/at.all')).toEqual([2, '', 'error: No such file: /nowhere/at.all\n']);
  expect(await refusal('ingest', folder)).toEqual([
    2,
    '',
    `error: ${folder} is a folder. Pass a file of reports, such as ${folder}/reports.ndjson.\n`,
  ]);
  expect(await refusal('export', stream, '--format', 'xml')).toEqual([
    2,
    '',
    'error: --format has the value "xml", expected ndjson, csv, parquet.\n',
  ]);
  expect(await refusal('quarantine', 'list', '--limit', '0')).toEqual([
    2,
    '',
    'error: --limit has the value "0", expected a whole number from 1 to 10000.\n',
  ]);
});

test('program: a store that is missing, of an unknown engine, in memory, or locked is explained', async () => {
  const none = await runCommand(['store', 'stats', '--store', join(folder, 'none')]);
  expect([none.code, none.stderr]).toEqual([
    3,
    `error: No store in ${folder}/none. Create one with: sealpost init --store ${folder}/none.\n`,
  ]);
  const unknown = await runCommand(['store', 'stats', '--store', 'mysql://x']);
  expect([unknown.code, unknown.stderr]).toEqual([
    2,
    'error: There is no store engine for mysql:. Use lmdb:FOLDER or postgres://USER@HOST/DATABASE.\n',
  ]);
  for (const command of [['serve'], ['init'], ['account', 'list'], ['ingest', '-']]) {
    const memory = await runCommand([...command, '--store', 'memory:'], { stdin: '{}\n' });
    expect([memory.code, memory.stderr]).toEqual([
      2,
      'error: A store in memory is lost when its process exits. Use lmdb:FOLDER or postgres://USER@HOST/DATABASE.\n',
    ]);
  }
  const locked = await runCommand(['ingest', '-', '--store', running.folder], { stdin: '{}\n' });
  expect([locked.code, locked.stderr]).toEqual([
    3,
    `error: Process ${process.pid} is already writing to the store in ${running.folder}/reports. Stop it, or send your reports to it: sealpost ingest --to URL.\n`,
  ]);
});

// One that is left open is closed by the garbage collector, which Node announces as a deprecated practice.
test.runIf(process.platform === 'linux')(
  'program: a file of reports is closed, also where nothing of it was read',
  async () => {
    const file = join(folder, 'unread.ndjson');
    writeFileSync(file, '{}\n');
    const isOpen = () =>
      readdirSync('/proc/self/fd').some((fd) => {
        try {
          return readlinkSync(`/proc/self/fd/${fd}`) === file;
        } catch {
          return false; // the folder's own descriptor, closed by now
        }
      });
    const refused = createServer((_, response) => response.writeHead(401).end('{}'));
    await new Promise<void>((resolve) => refused.listen(0, '127.0.0.1', resolve));
    const { port } = refused.address() as AddressInfo; // it listens on a port
    const to = ['--to', `http://127.0.0.1:${port}`];
    const env = { SEALPOST_INGEST_TOKEN: 'a-token-of-sixteen' };
    const ran = [
      await runCommand(['ingest', file, '--store', running.folder]),
      await runCommand(['ingest', file, ...to], { env }),
      await runCommand(['ingest', file, ...to]),
      await runCommand(['report', 'decode', file]),
    ];
    refused.close();
    expect([ran.map(({ code }) => code), isOpen()]).toEqual([[3, 3, 2, 1], false]);
  },
);

test('program: ingest asks for streams and signers before it rejects everything', async () => {
  const store = join(folder, 'fresh');
  const ingest = () => runCommand(['ingest', '-', '--store', store], { stdin: '{}\n' });
  expect([(await ingest()).code, (await ingest()).stderr]).toEqual([
    1,
    `error: No stream is registered, so every report would be rejected. First run: sealpost stream import catalog.json --store ${store}.\n`,
  ]);
  expect(existsSync(store)).toBe(false); // an empty store would keep `store restore` out of the folder
  const catalog = join(folder, 'catalog.json');
  writeFileSync(catalog, JSON.stringify([testStream(stream)]));
  await runCommand(['stream', 'import', catalog, '--store', store]);
  expect((await ingest()).stderr).toBe(
    `error: No signer set is registered, so every report would be rejected. First run: sealpost signers import signers.json --store ${store}.\n`,
  );
});

test('program: config shows values with their sources, and no secret', async () => {
  const config = join(folder, 'config.json');
  writeFileSync(config, '{"retentionDays": 7, "aheadMaxMs": "100"}');
  const env = {
    SEALPOST_CONFIG: config,
    SEALPOST_AHEAD_MAX_MS: '200',
    SEALPOST_INGEST_TOKEN: 'hidden-from-everyone',
    SEALPOST_STOER: 'x',
  };
  const { code, stdout, stderr } = await runCommand(['config', '--json', '--store', './here'], { env });
  expect([code, stderr]).toEqual([0, 'warning: SEALPOST_STOER is not a setting and has no effect.\n']);
  const shown = new Map(JSON.parse(stdout).map((one: { name: string }) => [one.name, one]));
  expect(shown.get('store')).toMatchObject({ value: './here', source: 'flag', default: 'lmdb:./data' });
  expect(shown.get('retentionDays')).toMatchObject({ value: '7', source: 'file' });
  expect(shown.get('aheadMaxMs')).toMatchObject({ value: '200', source: 'environment' });
  expect(shown.get('ingestToken')).toMatchObject({ value: '(set)', source: 'environment' });
  expect((await runCommand(['config'], { env })).stdout).toMatch(
    /^retentionDays +7 +file +30 +SEALPOST_RETENTION_DAYS/m,
  );
  writeFileSync(config, '{"retentionDays": 0}');
  expect(await runCommand(['store', 'stats'], { env })).toEqual({
    code: 2,
    stdout: '',
    stderr: `error: The setting retentionDays is "0" in ${config}, expected a whole number of days from 1 to 36500.\n`,
  });
});

test('program: the error about a config file that is not JSON has the position and does not quote it', async () => {
  const config = join(folder, 'broken.json');
  const token = 'hidden-from-everyone';
  for (const text of [`{"ingestToken": "${token}"\n "x": 1}`, `${token}`, `{"ingestToken": ${token}}`, '']) {
    writeFileSync(config, text, { mode: 0o600 });
    const { code, stderr } = await runCommand(['config', '--config', config]);
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/broken\.json is not JSON(: see line \d+, column \d+)?\.\n$/),
    ]);
    expect(stderr).not.toContain('hidden');
  }
  writeFileSync(config, `{"ingestToken": "${token}"\n "x": 1}`, { mode: 0o600 });
  expect((await runCommand(['config', '--config', config])).stderr).toBe(
    `error: ${config} is not JSON: see line 2, column 2.\n`,
  );
});

test('program: a JSON file may begin with a byte order mark, as some editors write it', async () => {
  const config = join(folder, 'marked.json');
  writeFileSync(config, '\ufeff{"retentionDays": 7}');
  expect((await runCommand(['config', '--config', config])).stdout).toMatch(/^retentionDays +7 +file /m);
});

test('program: an invalid address in a setting is not quoted, because it may contain a password', async () => {
  const env = { SEALPOST_READ_STORE: 'postgres:/me:hidden@h/db' };
  const { code, stderr } = await runCommand(['config'], { env });
  expect([code, stderr]).toEqual([2, expect.stringContaining('The setting readStore is a value that is not shown')]);
});

test('program: a config file with a secret, and a token file, must not be accessible to other users', async () => {
  const config = join(folder, 'open.json');
  const refused = {
    code: 2,
    stdout: '',
    stderr: `error: ${config} contains a secret but is accessible to other users. Run: chmod 600 ${config}\n`,
  };
  const secrets = [
    { ingestToken: 'hidden-from-everyone' },
    { store: 'postgres://me:hidden@h/db' },
    { readStore: 'postgres://me@h/db?password=hidden' },
  ];
  for (const content of secrets) {
    writeFileSync(config, JSON.stringify(content));
    for (const mode of [0o644, 0o640, 0o604, 0o660]) {
      chmodSync(config, mode);
      expect(await runCommand(['config', '--config', config])).toEqual(refused);
    }
    chmodSync(config, 0o600);
    const { code, stdout } = await runCommand(['config', '--config', config]);
    expect([code, stdout.includes('hidden')]).toEqual([0, false]);
  }
  writeFileSync(config, '{"store": ["postgres://me:hidden@h/db"]}');
  chmodSync(config, 0o644);
  expect(await runCommand(['config', '--config', config])).toEqual(refused);
  writeFileSync(config, '{"retentionDays": 7, "store": "postgres://me@h/db"}');
  chmodSync(config, 0o644);
  expect((await runCommand(['config', '--config', config])).code).toBe(0);
  writeFileSync(config, '{"readStore": {"toString": 1}}');
  expect(await runCommand(['config', '--config', config])).toMatchObject({
    code: 2,
    stderr: `error: The setting readStore is neither a string nor a number in ${config}.\n`,
  });
  writeFileSync(config, 'hidden-from-everyone');
  const ingest = ['ingest', '-', '--to', 'http://127.0.0.1:1', '--ingest-token-file', config];
  expect(await runCommand(ingest, { stdin: '' })).toEqual(refused);
});

test('program: names of streams cannot control the terminal in any output', async () => {
  const catalog = join(folder, 'steering.json');
  const own = join(folder, 'steering');
  const name = 'EVIL\x1b[2J\x9b31m\x7f/USD';
  writeFileSync(catalog, JSON.stringify([{ ...testStream(stream), name }]));
  await runCommand(['stream', 'import', catalog, '--store', own]);
  const outputs = await Promise.all(
    [
      ['stream', 'list'],
      ['stream', 'list', '--json'],
      ['coverage', stream],
      ['stream', 'decommission', stream],
    ].map((args) => runCommand([...args, '--store', own])),
  );
  for (const { stdout, stderr } of outputs) {
    expect(`${stdout}${stderr}`).toContain('EVIL');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a terminal
    expect(`${stdout}${stderr}`).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
  }
});

test('program: coverage shows seconds, gaps and the median interval', async () => {
  const { stdout } = await run('coverage', stream, '--json');
  expect(JSON.parse(stdout)).toEqual({
    feedId: stream,
    name: 'TEST0001/USD-Streams-CexPrice',
    from: now - 100,
    to: now - 71,
    reports: 2,
    coveredSeconds: 20,
    completeness: 20 / 30,
    gapCount: 1,
    gaps: [{ from: now - 90, to: now - 81, seconds: 10 }],
    medianIntervalMs: 20_000,
  });
  const text = (await run('coverage', 'test0001/usd-streams-cexprice', '--to', 'now')).stdout;
  expect(text).toMatch(/^covered +20 of 101 seconds, 19\.8019 %$/m);
  expect(text).toMatch(/^2025-11-15T09:45:10Z {2}2025-11-15T09:45:19Z +10$/m);
  expect((await run('coverage', fine)).stdout).toMatch(/^covered +3 of 3 seconds, 100 %$/m);
  expect(await run('coverage', empty)).toMatchObject({
    code: 1,
    stderr: 'error: TEST0003/USD-Streams-CexPrice has no reports. Set --from and --to to measure anyway.\n',
  });
  expect((await run('coverage', empty, '--from', '-9s', '--to', 'now')).stdout).toMatch(
    /^covered +0 of 10 seconds, 0 %$/m,
  );
});

test('program: csv has a header and exact decimals, or integers with --raw', async () => {
  const csv = async (...more: string[]) =>
    (await run('export', stream, '--from', `${now - 75}`, '--format', 'csv', ...more)).stdout.split('\n');
  const [header, row = '', ...rest] = await csv();
  expect([header, rest]).toEqual([
    'name,feedID,version,validFromTimestamp,validFromTimestampUTC,observationsTimestamp,observationsTimestampUTC,nativeFee,linkFee,expiresAt,expiresAtUTC,price,bid,ask',
    [''],
  ]);
  expect(row).toBe(
    `TEST0001/USD-Streams-CexPrice,${stream},3,${now - 80},2025-11-15T09:45:20.000Z,${now - 71},2025-11-15T09:45:29.000Z,0.000000000000000001,0.000000000000000002,${now - 71 + 30 * 86_400},2025-12-15T09:45:29.000Z,${'123456789012.34567890123456789,'.repeat(3).slice(0, -1)}`,
  );
  expect((await csv('--raw'))[1]).toMatch(/,1,2,\d+,[^,]+,123456789012345678901234567890,/);
});

test('program: export pages through a millisecond stream without losing or repeating a report', async () => {
  const lines = (await run('export', fine, '--from', `${now - 9}`, '--to', `${now - 8}`)).stdout.trim().split('\n');
  expect([lines.length, new Set(lines).size]).toEqual([1_000, 1_000]);
  expect((await run('export', fine)).stdout.trim().split('\n').length).toBe(1_500);
});

test('program: stats and verify work on a store that is being written to', async () => {
  expect(JSON.parse((await run('store', 'stats', '--json')).stdout)).toMatchObject({
    streams: 2,
    reports: 1_502,
    quarantined: 0,
  });
  expect((await run('store', 'stats')).stdout).toMatch(/^reports +1,502$/m);
  const { code, stdout } = await run('store', 'verify', '--signatures', '--verifier-threads', '1');
  expect([code, stdout]).toEqual([
    0,
    '1,502 reports of 2 streams checked. 1 other stream in the catalog has no reports. No problems found.\n',
  ]);
});

test('program: an empty quarantine and an empty log say so', async () => {
  expect((await run('quarantine', 'list')).stdout).toBe('No rejected lines.\n');
  expect((await run('audit', 'list')).stdout).toMatch(/^2 {2}2025-11-15T09:46:40Z {2}test +set up +\{\}$/m);
});
