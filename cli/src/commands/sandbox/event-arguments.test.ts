import { expect, test } from 'vitest';
import { against } from '../../reading-sample.fixture.ts';
import { runCommand } from '../../sample-session.fixture.ts';
import { readEventArguments } from './event-arguments.ts';

test('sandbox set: words are read by the table, the first without = as the main field', () => {
  expect(readEventArguments('crash', ['30', 'streams=ETH/USD,BTC/USD', 'over=1m', 'at=10m'])).toEqual({
    type: 'crash',
    percent: 30,
    streams: ['ETH/USD', 'BTC/USD'],
    over: '1m',
    at: '10m',
  });
  expect(readEventArguments('fault', ['status=503,count=2', 'at=5s'])).toEqual({
    type: 'fault',
    fault: 'status=503,count=2',
    at: '5s',
  });
  expect(readEventArguments('step', ['90s'])).toEqual({ type: 'step', by: '90s' });
  expect(readEventArguments('{"type":"pause"}', [])).toEqual({ type: 'pause' });
  expect(() => readEventArguments('crash', ['30', '40'])).toThrow('percent is given twice.');
  expect(() => readEventArguments('pause', ['now'])).toThrow('"now" is not a field of pause. Fields: at=….');
  expect(() => readEventArguments('crash', ['by=3'])).toThrow(
    '"by=3" is not a field of crash. Fields: at=…, streams=…',
  );
  expect(() => readEventArguments('explode', [])).toThrow('"explode" is not an event, expected one of level, jump,');
  expect(() => readEventArguments('{"type"', [])).toThrow('The event is not JSON.');
});

test('sandbox: wrong flags are errors that name them, before anything starts', async () => {
  const error = async (...args: string[]) => {
    const { code, stderr, stdout } = await runCommand(['sandbox', ...args]);
    expect([code, stdout]).toEqual([2, '']);
    return stderr;
  };
  expect(await error('--speed', '0')).toBe('error: --speed has the value "0", expected a number from 0.01 to 10000.\n');
  expect(await error('--at', 'soon')).toContain('error: --at has the value "soon", expected Unix seconds, an RFC 3339');
  expect(await error('--at', '5')).toContain('error: --at has the value "5", expected a date of a whole second');
  expect(await error('--past', '8d')).toContain('--past has the value "8d", expected a duration from 0s to 7d');
  expect(await error('--streams', 'FOO/USD')).toContain('--streams[0]: FOO/USD is not a simulated asset.');
  expect(await error('--chain', '--oracles', '3')).toContain('--chain needs --faulty 1 or more, and so --oracles 4 or');
  expect(await error('--fault', 'status=99')).toContain('--fault status=99: status is 99, expected 200 to');
  expect(await error('--listen', '127.0.0.1:65535')).toBe(
    'error: --listen has the value "127.0.0.1:65535", expected a port up to 65533.\n',
  );
  expect(await error('--listen', '7411')).toContain('The setting listen is "7411" in --listen, expected HOST:PORT');
  expect(await error('--ops-listen', '7412')).toContain('"7412" in --ops-listen, expected HOST:PORT');
  expect(await error('--scenario', '/nonexistent')).toContain('No such file: /nonexistent');
  expect(await error('set')).toContain('Name an event, or a file with --file, but not both.');
  expect(await error('set', 'pause', '--url', 'nowhere')).toContain('--url has the value "nowhere"');
});

test('sandbox: without a running one, show says how to start it', async () => {
  const { code, stderr } = await runCommand(['sandbox', 'show', '--url', 'http://127.0.0.1:1']);
  expect([code, stderr]).toEqual([
    3,
    'error: No sandbox answers at http://127.0.0.1:1. Start one with: sealpost sandbox. For another address, use --url.\n',
  ]);
});

test('sandbox: options after the name of a subcommand are its own', async () => {
  const state = { speed: 1, faults: [] };
  const shown = await against(
    (_, response) => response.end(JSON.stringify(state)),
    (url) => runCommand(['sandbox', 'show', '--json', '--url', url]),
  );
  expect(shown).toEqual({ code: 0, stdout: `${JSON.stringify(state)}\n`, stderr: '' });
  const { code, stderr } = await runCommand(['sandbox', 'show', '--speed', '2']);
  expect([code, stderr]).toEqual([2, expect.stringContaining("unknown option '--speed'")]);
});
