import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, existsSync, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { execArgvForModules, urlForProcess } from '../../../tests/support/module-for-process.ts';
import { sampleRequest as request } from '../../../tests/support/samples.ts';
import { logLevels } from '../config/values.ts';
import { type LogOptions, openLog, storeLine } from './log.ts';
import type { Observation } from './observe.ts';

/** A log whose lines, clock and timers the test holds. */
const open = (options: Partial<LogOptions> = {}) => {
  const lines: string[] = [];
  const due: (() => void)[] = [];
  const clock = { ms: Date.UTC(2025, 10, 15, 12, 0, 0, 250) };
  const log = openLog({
    level: 'debug',
    destination: { write: (line) => void lines.push(line) },
    nowMs: () => clock.ms,
    slowMs: 1_000,
    complaintsPerSecondMax: 3,
    later: (act) => void due.push(act),
    ...options,
  });
  return { ...log, lines, due, clock, parsed: () => lines.map((line) => JSON.parse(line)) };
};

const refused = (code: 'malformed_line' | 'unknown_stream'): Observation => ({
  kind: 'refused',
  code,
  feedId: null,
  message: 'The line is not a JSON report.',
});

test('log: a request is one line of JSON, in UTC', () => {
  const log = open();
  log.observe(request());
  expect(log.lines).toEqual([
    `{"level":"info","time":"2025-11-15T12:00:00.250Z","pid":${process.pid},"event":"request",` +
      '"requestId":"01890a5d-ac96-774b-bcce-b302099a8057","userId":"ba2d3a9e-7c1f-4a53-9d0c-0f4f6f2f6a11",' +
      '"address":"192.0.2.7","route":"/api/v1/reports/latest","method":"GET","status":200,"durationMs":0.412,"bytes":912,"code":null}\n',
  ]);
});

test('log: the line of a plain answer, which is made by hand, has the bytes that pino writes for the same fields', () => {
  const log = open();
  const lines: string[] = [];
  const time = () => ',"time":"2025-11-15T12:00:00.250Z"';
  const formatters = { level: (level: string) => ({ level }) };
  const logger = pino(
    { base: { pid: process.pid }, formatters, timestamp: time },
    { write: (line) => lines.push(line) },
  );
  for (const changes of [
    {},
    { userId: null, route: null, method: 'HEAD', status: 304, bytes: 0, durationMs: 0 },
    { userId: 'a "quoted" \u007f user', address: '[2001:db8::1%eth0]:80', route: 'explorer', durationMs: 999.9994 },
  ] as const) {
    const { kind, requestId, userId, address: from, route, method, status, durationMs, bytes, code } = request(changes);
    const path = { reportLatest: '/api/v1/reports/latest', explorer: 'explorer' }[String(route)] ?? null;
    const rounded = Math.round(durationMs * 1_000) / 1_000;
    const address = from.startsWith('[') ? '2001:db8::1' : from;
    logger.info({
      event: kind,
      requestId,
      userId,
      address,
      route: path,
      method,
      status,
      durationMs: rounded,
      bytes,
      code,
    });
    log.observe(request(changes));
  }
  expect(log.lines.map((line) => line.replace('\\u007f', '\u007f'))).toEqual(lines);
});

test('log: a plain answer has no line where the level is above info', () => {
  const log = open({ level: 'warn' });
  log.observe(request());
  expect(log.lines).toEqual([]);
});

test('log: a 5xx is an error with its cause and stack; a 4xx has only its code', () => {
  const log = open();
  const cause = new Error('EIO: i/o error');
  log.observe(request({ status: 503, code: 'store_unavailable', error: new TypeError('read failed', { cause }) }));
  log.observe(request({ status: 400, code: 'malformed_argument', error: new Error('never shown') }));
  const [failed, mistaken] = log.parsed();
  expect(failed).toMatchObject({ level: 'error', status: 503, code: 'store_unavailable' });
  expect(failed.error).toMatchObject({
    name: 'TypeError',
    message: 'read failed',
    cause: { message: 'EIO: i/o error' },
  });
  expect(failed.error.stack).toContain('log.test.ts');
  expect(mistaken).toMatchObject({ level: 'info', status: 400, code: 'malformed_argument' });
  expect(mistaken).not.toHaveProperty('error');
});

test('log: a reload that fails is an error with its cause once, and a line with the duration when it works again', () => {
  const log = open();
  log.observe({ kind: 'adminReloadFailed', error: new Error('locked'), isNews: true });
  for (let i = 0; i < 20; i += 1) log.observe({ kind: 'adminReloadFailed', error: new Error('locked'), isNews: false });
  log.observe({ kind: 'adminReloadRecovered', seconds: 12.5 });
  for (const act of log.due) act();
  expect(log.parsed().filter(({ level }) => level !== 'debug')).toMatchObject([
    { level: 'error', event: 'adminReloadFailed', error: { message: 'locked' } },
    { level: 'info', event: 'adminReloadRecovered', durationMs: 12_500 },
  ]);
});

test('log: what was broken on purpose is no failure, however slow', () => {
  const log = open();
  log.observe(request({ status: 503, code: 'on_purpose', isIntercepted: true, durationMs: 5_000 }));
  expect(log.parsed()[0]).toMatchObject({ level: 'info', code: 'on_purpose' });
  expect(log.parsed()[0]).not.toHaveProperty('error');
});

test('log: a request that is shed is a warning without a stack', () => {
  const log = open();
  log.observe(request({ status: 503, code: 'overloaded', error: new Error('overloaded') }));
  expect(log.parsed()[0]).toMatchObject({ level: 'warn', code: 'overloaded' });
  expect(log.parsed()[0]).not.toHaveProperty('error');
});

test('log: of an error only text and code are logged', () => {
  const log = open();
  const error = Object.assign(new Error('Invalid URL'), {
    code: 'ERR_INVALID_URL',
    input: '/api/v1/reports?canary-path',
    headers: { authorization: 'canary-user', 'x-authorization-signature-sha256': 'canary-signature' },
  });
  log.observe({ ...request({ status: 500, code: 'internal_error', error }), ...{ url: 'canary-url' } });
  expect(log.parsed()[0].error.code).toBe('ERR_INVALID_URL');
  expect(log.lines.join('')).not.toContain('canary');
});

test('log: control characters of any input stay inside their line and reach no terminal', () => {
  const log = open();
  const nasty = 'a\r\nb\u0000\u001b[31mred\u007f\u009b2J\u0085\u2028\u2029\u202etxt\ud800';
  log.observe({ kind: 'warning', code: 'ops_failed', message: nasty, error: new Error(nasty) });
  log.observe(request({ method: nasty, userId: nasty, code: nasty, requestId: nasty }));
  log.observe({ kind: 'refused', code: 'malformed_line', feedId: nasty, message: nasty });
  log.observe(request({ status: 500, error: nasty }));
  expect(log.lines).toHaveLength(4);
  for (const line of log.lines) expect(line).toMatch(/^[\x20-\x7e]+\n$/);
  expect(log.parsed()[0].message).toBe(nasty);
});

test('log: a long text is cut, and a chain of causes ends', () => {
  const log = open();
  const endless = new Error('x'.repeat(100_000));
  endless.cause = endless;
  log.observe(request({ status: 500, error: endless }));
  expect(log.lines[0]?.length).toBeLessThan(20_000);
});

test('log: a flood of rejections is a few lines, then one that counts the rest by code', () => {
  const log = open();
  for (let i = 0; i < 1_000; i += 1) log.observe(refused(i % 4 === 0 ? 'unknown_stream' : 'malformed_line'));
  expect(log.parsed().map(({ level, code }) => [level, code])).toEqual([
    ['warn', 'unknown_stream'],
    ['warn', 'malformed_line'],
    ['warn', 'malformed_line'],
  ]);
  expect(log.due).toHaveLength(1);
  log.due[0]?.();
  expect(log.parsed()[3]).toMatchObject({
    level: 'warn',
    event: 'suppressed',
    of: 'refused',
    count: 997,
    codes: { malformed_line: 748, unknown_stream: 249 },
  });
});

test('log: of a flood of shed requests as well', () => {
  const log = open();
  for (let i = 0; i < 1_000; i += 1) log.observe(request({ status: 503, code: 'overloaded' }));
  log.due[0]?.();
  expect(log.parsed().map(({ event, count, codes }) => [event, count, codes])).toEqual([
    ...Array.from({ length: 3 }, () => ['request', undefined, undefined]),
    ['suppressed', 997, { overloaded: 997 }],
  ]);
});

test('log: the next second has its own lines, after the count of the last one', () => {
  const log = open();
  for (let i = 0; i < 5; i += 1) log.observe(refused('malformed_line'));
  log.clock.ms += 1_000;
  log.observe(refused('unknown_stream'));
  log.due[0]?.();
  expect(log.parsed().map(({ event, count }) => [event, count])).toEqual([
    ['refused', undefined],
    ['refused', undefined],
    ['refused', undefined],
    ['suppressed', 2],
    ['refused', undefined],
  ]);
});

test('log: a clock that is set back does not suppress what comes then', () => {
  const log = open();
  const complain = () => log.observe(refused('malformed_line'));
  for (let i = 0; i < 5; i++) complain();
  log.clock.ms -= 3_600_000;
  for (let i = 0; i < 4; i++) complain();
  expect(log.lines).toHaveLength(3 + 1 + 3);
  for (const act of log.due) act();
  expect(log.parsed().flatMap(({ event, count }) => (event === 'suppressed' ? [count] : []))).toEqual([2, 1]);
});

test('log: one kind of warning does not suppress another, and requests that are not shed are never suppressed', () => {
  const log = open();
  for (let i = 0; i < 10; i += 1) log.observe(refused('malformed_line'));
  for (let i = 0; i < 10; i += 1) log.observe(request());
  log.observe({ kind: 'adminReloadFailed', error: new Error('locked'), isNews: true });
  const events = log.parsed().map(({ event }) => event);
  expect(events.filter((event) => event === 'request')).toHaveLength(10);
  expect(events.at(-1)).toBe('adminReloadFailed');
});

test('log: closing logs the suppressed count, once', () => {
  const log = open();
  for (let i = 0; i < 4; i += 1) log.observe(refused('malformed_line'));
  log.close();
  log.due[0]?.();
  expect(log.parsed().filter(({ event }) => event === 'suppressed')).toHaveLength(1);
});

test('log: a slow request or commit is a warning', () => {
  const log = open({ slowMs: 100 });
  log.observe(request({ durationMs: 100 }));
  log.observe({ kind: 'committed', seconds: 0.2 });
  log.observe({ kind: 'committed', seconds: 0.002 });
  expect(log.parsed().map(({ level, durationMs, slow }) => [level, durationMs, slow])).toEqual([
    ['warn', 100, true],
    ['warn', 200, true],
    ['debug', 2, undefined],
  ]);
});

test.each([
  ['silent', []],
  ['error', ['stopped']],
  ['warn', ['connectionDropped', 'stopped']],
  ['info', ['started', 'reloaded', 'request', 'draining', 'connectionDropped', 'stopped']],
  ['debug', ['started', 'reloaded', 'request', 'ingested', 'visible', 'draining', 'connectionDropped', 'stopped']],
] as const)('log: at level %s the events are %j', (level, expected) => {
  const log = open({ level });
  log.observe({ kind: 'started', version: '0.1.0', addresses: { api: 'http://127.0.0.1:7400' } });
  log.observe({ kind: 'reloaded', settings: [] });
  log.observe(request());
  log.observe({ kind: 'ingested', result: 'stored', count: 3 });
  log.observe({ kind: 'visible', seconds: 0.01, count: 3 });
  log.observe({ kind: 'draining', reason: 'SIGTERM' });
  log.observe({ kind: 'connectionDropped', reason: 'connections' });
  log.observe({ kind: 'stopped', clean: false });
  expect(log.parsed().map(({ event }) => event)).toEqual(expected);
});

test('log: every level of the setting is one of pino’s, or silent', () => {
  expect([...Object.values(pino.levels.labels), 'silent']).toEqual(expect.arrayContaining([...logLevels]));
});

/** The levels and fields of these events. */
const linesOf = (...events: readonly Parameters<typeof storeLine>[0][]) =>
  events.map(storeLine).map(({ level, fields }) => ({ level, ...fields }));

test('store log: a damaged record is an error that names it; an unexpected end says what to do, and how often it happened', () => {
  expect(
    linesOf(
      { kind: 'damaged', total: 1, table: 'tail', key: '00', reason: 'it does not match its checksum' },
      { kind: 'endedUnexpectedly', times: 1 },
      { kind: 'endedUnexpectedly', times: 3 },
    ),
  ).toMatchObject([
    { level: 'error', event: 'damaged', table: 'tail', key: '00', feedId: null },
    { level: 'warn', times: 1, message: expect.stringContaining('ended unexpectedly. Run: sealpost store verify.') },
    { level: 'error', times: 3, message: expect.stringContaining('3 times in a row') },
  ]);
});

test('store log: what retention deleted is one line with the count', () => {
  expect(linesOf({ kind: 'reportsDeleted', count: 86_400, endMs: Date.parse('2026-03-01T00:00:00Z') })).toEqual([
    { level: 'info', event: 'reportsDeleted', count: 86_400, before: '2026-03-01T00:00:00.000Z' },
  ]);
});

test('store log: a replica that is not used is a warning with the reason; its use again is a line with the duration', () => {
  const replica = 'postgres://db-2/prices';
  expect(
    linesOf(
      { kind: 'replicaUnused', replica, reason: 'It is behind the primary.' },
      { kind: 'replicaUsed', replica, seconds: 12.5 },
    ),
  ).toMatchObject([
    { level: 'warn', event: 'replicaUnused', replica, reason: 'It is behind the primary.' },
    { level: 'info', event: 'replicaUsed', replica, durationMs: 12_500 },
  ]);
});

test('store log: commits that the database lost are an error that says what to do', () => {
  expect(linesOf({ kind: 'commitsLost', reason: 'Restart this node.' })).toEqual([
    { level: 'error', event: 'commitsLost', reason: 'Restart this node.' },
  ]);
});

test.each([
  ['followingStopped', 'followingResumed'],
  ['durabilityReduced', 'durabilityRestored'],
] as const)('store log: %s is an error with the reason, once, and %s a line with the duration', (began, ended) => {
  expect(
    linesOf(
      { kind: began, reason: 'The database says so.', isNews: true },
      { kind: began, reason: 'The database says so.', isNews: false },
      { kind: ended, seconds: 12.5 },
    ),
  ).toMatchObject([
    { level: 'error', event: began, reason: 'The database says so.' },
    { level: 'debug', event: began, reason: 'The database says so.' },
    { level: 'info', event: ended, durationMs: 12_500 },
  ]);
});

/** For Node, to run a module that can `open()` logs to standard output. */
const argsOf = (program: string): string[] => {
  const script = `
    import { openLog } from ${JSON.stringify(urlForProcess('server/src/observe/log.ts'))};
    const open = (more) => openLog({ level: 'info', nowMs: Date.now, slowMs: 1_000, complaintsPerSecondMax: 1, ...more });
    ${program}`;
  return ['--expose-gc', ...execArgvForModules, '--input-type=module', '--eval', script];
};

/** Runs a module that can `open()` logs to standard output, and prints. */
const runLogging = (
  program: string,
  stdout: 'pipe' | number = 'pipe',
): { readonly stdout: string; readonly stderr: string; readonly status: number | null } => {
  const limits = { maxBuffer: 2 ** 27, timeout: 60_000 };
  return spawnSync(process.execPath, argsOf(program), {
    encoding: 'utf8',
    ...limits,
    stdio: ['ignore', stdout, 'pipe'],
  });
};

test.runIf(existsSync('/dev/full'))(
  'log: on a full disk a flush ends, as does the process, and lost lines are told',
  () => {
    const full = openSync('/dev/full', 'w');
    const { stderr } = runLogging(
      `
    let lost = 0;
    const log = open({ onLost: () => { lost += 1; } });
    const end = { kind: 'endedUnexpectedly', times: 1 };
    log.observe(end);
    await new Promise((resolve) => setTimeout(resolve, 200));
    log.observe(end);
    log.pass(['line\\n']);
    log.close();
    log.pass(['late\\n']);
    process.on('exit', () => console.error(lost > 0 ? 'told' : 'not told'));
  `,
      full,
    );
    closeSync(full);
    expect(stderr).toBe('told\n');
  },
);

test('log: one that nobody reads does not stop its process, whatever it has to tell', async () => {
  const program = `
    const log = open();
    log.pass(Array.from({ length: 4_000 }, () => 'x'.repeat(1_000) + '\\n'));
    setTimeout(() => {
      log.observe({ kind: 'endedUnexpectedly', times: 1 });
      console.error('goes on');
    }, 1_500);
    setInterval(() => {}, 1_000);`;
  const child = spawn(process.execPath, argsOf(program), { stdio: ['ignore', 'pipe', 'pipe'] });
  const [said] = await once(child.stderr, 'data');
  child.kill('SIGKILL');
  expect(String(said)).toBe('goes on\n');
});

/** Runs a module with a named pipe as standard output, of which `read` takes some now and then. A pipe of `spawn` is a socket, which does not block. */
const runToPipe = async (program: string, read: (descriptor: number) => string) => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-log-'));
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const reader = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
  const writer = openSync(pipe, 'w');
  const limits = { timeout: 60_000, killSignal: 'SIGKILL' } as const;
  const child = spawn(process.execPath, argsOf(program), { stdio: ['ignore', writer, 'pipe'], ...limits });
  closeSync(writer);
  const ended = once(child, 'exit');
  let text = '';
  const isOver = (): boolean => child.exitCode !== null || child.signalCode !== null;
  for (; !isOver(); await Promise.race([sleep(200), ended])) text += read(reader);
  const [code] = await ended;
  text += readAvailable(reader);
  closeSync(reader);
  rmSync(folder, { recursive: true });
  return { code, text };
};

const readAvailable = (descriptor: number, bytesMax = Number.POSITIVE_INFINITY): string => {
  const chunk = Buffer.alloc(Math.min(bytesMax, 65_536));
  let text = '';
  try {
    while (text.length < bytesMax) text += chunk.toString('latin1', 0, readSync(descriptor, chunk));
  } catch {} // nothing there: this process holds an end to write, so there is no other end
  return text;
};

test.skipIf(process.platform === 'win32')(
  'log: a process whose log nobody reads ends after its close, with its own exit code',
  async () => {
    const program = `
      const log = open();
      log.pass(Array.from({ length: 4_000 }, () => 'x'.repeat(1_000) + '\\n'));
      process.exitCode = 7;
      await log.close();`;
    const { code } = await runToPipe(program, () => '');
    expect(code).toBe(7);
  },
);

test('log: a write that is under way when its log is closed, and finds the pipe full, does not keep the process', () => {
  const { status } = runLogging(`
    const { default: fs } = await import('node:fs');
    const { syncBuiltinESMExports } = await import('node:module');
    const full = Object.assign(new Error('full'), { code: 'EAGAIN' });
    fs.write = (descriptor, bytes, done) => setTimeout(() => done(full, 0), 4_000);
    syncBuiltinESMExports();
    const log = open();
    log.pass(['line\\n']);
    await log.close();
  `);
  expect(status).toBe(0);
});

test.skipIf(process.platform === 'win32')('log: a slow reader gets every line of a log that is closed', async () => {
  const program = `
    const log = open();
    log.pass(Array.from({ length: 2_000 }, (_, i) => String(i).padStart(999, 'x') + '\\n'));
    await log.close();`;
  const { code, text } = await runToPipe(program, (descriptor) => readAvailable(descriptor, 65_536));
  const lines = text.trimEnd().split('\n');
  expect(code).toBe(0);
  expect(lines.map((line) => Number(line.replaceAll('x', '')))).toEqual(Array.from({ length: 2_000 }, (_, i) => i));
});

test('log: one to standard output leaves nothing behind in its process once it is closed, and a line after that is written', () => {
  const { stdout, stderr } = runLogging(`
    const { setTimeout } = await import('node:timers/promises');
    const write = async () => {
      const log = open();
      log.pass(['line\\n']);
      await log.close();
      return log;
    };
    await write();
    await setTimeout(200);
    const before = process.listenerCount('exit');
    for (let i = 0; i < 20; i++) await write();
    const last = await write();
    await setTimeout(200);
    console.error(process.listenerCount('exit') - before);
    last.pass(['late\\n']);
  `);
  expect(stderr.trim()).toBe('0');
  expect(stdout).toBe(`${'line\n'.repeat(22)}late\n`);
});

test('log: what waits at the exit is written, also after another log of the process was closed and is gone', () => {
  const { stdout } = runLogging(`
    const { setTimeout } = await import('node:timers/promises');
    const first = open();
    first.pass(['first\\n']);
    (() => open().close())();
    const last = open();
    for (let i = 0; i < 20; i++) {
      await setTimeout(20);
      gc();
    }
    last.pass(['last\\n']);
    process.exit(0);
  `);
  expect(stdout.trimEnd().split('\n').sort()).toEqual(['first', 'last']);
});

test('log: what waits at the exit is written there, and by no thread, which may never begin', () => {
  const { stdout } = runLogging(`
    const { default: fs } = await import('node:fs');
    const { syncBuiltinESMExports } = await import('node:module');
    const log = open();
    fs.write = () => {};
    syncBuiltinESMExports();
    log.pass(['last\\n']);
  `);
  expect(stdout).toBe('last\n');
});

test('log: lines that standard output drops are counted, when the process writes faster than the reader', () => {
  const total = 120_000;
  const { stdout } = runLogging(`
    const log = open();
    const started = { kind: 'started', version: 'x'.repeat(200), addresses: {} };
    for (let i = 0; i < ${total}; i += 1) log.observe(started);
  `);
  const lines = stdout.trimEnd().split('\n');
  const last = JSON.parse(lines.at(-1) ?? '');
  expect(last).toMatchObject({ event: 'suppressed', of: 'lines' });
  expect(lines.length - 1 + last.count).toBe(total);
});

test('log: a live connection is one line when it ends: who, how long, how much, and why', () => {
  const log = open({ level: 'info' });
  log.observe({ kind: 'liveOpened', route: 'socket' });
  log.observe({ kind: 'liveDelivered', route: 'socket', count: 1_000 });
  const counts = { messages: 24, bytes: 39_600, durationMs: 1_500.12345 };
  const who = { requestId: 'abc-1', userId: 'ba2d3a9e-7c1f-4a53-9d0c-0f4f6f2f6a11' };
  log.observe({ kind: 'liveEnded', route: 'socket', ...who, ...counts, reason: 'too_slow', closeCode: 1013 });
  const rounded = { ...counts, durationMs: 1_500.123 };
  expect(log.parsed()).toEqual([
    expect.objectContaining({
      level: 'info',
      event: 'liveEnded',
      route: '/api/v1/ws',
      ...who,
      ...rounded,
      reason: 'too_slow',
      closeCode: 1013,
    }),
  ]);
});
