// The control API of a sandbox. An input is JSON, {"method": …, "path": …, "body": …}; other bytes are the body of a POST of events.
import assert from 'node:assert/strict';
import { request as httpRequest, METHODS } from 'node:http';
import { createControl } from '../../../sandbox/src/control.ts';
import { eventTypes } from '../../../sandbox/src/scenario/event-table.ts';
import { parseScenario } from '../../../sandbox/src/scenario/parse.ts';
import { type SampleRunner, startSampleRunner } from '../../../sandbox/src/scenario-runner.fixture.ts';
import { openOpsListener } from '../../../server/src/ops/ops.ts';
import { shapeOf, type Target } from '../target.ts';

const events: readonly Readonly<Record<string, unknown>>[] = [
  { type: 'price', stream: 'ETH/USD', to: 2_000, over: '10s' },
  { type: 'step', by: '2s' },
  { type: 'pause' },
  { type: 'resume' },
  { type: 'speed', speed: 2 },
  { type: 'fault', fault: 'status=503,route=reportLatest' },
  { type: 'fault', fault: { kind: 'latency', ms: 500 } },
  { type: 'rotate' },
  { at: '5s', type: 'outage', stream: 'ETH/USD', for: '10s' },
  ...eventTypes.map((type) => ({ type })),
];

const seeds = [
  ...events.map((body) => ({ method: 'POST', path: '/sandbox/events', body })),
  { method: 'POST', path: '/sandbox/events', body: events.slice(0, 3) },
  ...['/sandbox', '/sandbox/record', '/sandbox/requests', '/sandbox/schema'].map((path) => ({ method: 'GET', path })),
  { method: 'DELETE', path: '/sandbox/faults/1' },
  { method: 'DELETE', path: '/sandbox/faults/%zz' },
];

/** A step over years takes minutes: time is simulated second by second. */
const isLong = (text: string): boolean => {
  const by = [...text.matchAll(/"by"\s*:\s*("(?:[^"\\]|\\.)*"|[^,}]*)/g)].map(([, value]) => value);
  return text.includes('step') && by.some((value) => !/^"\d{1,2}(?:\.\d+)?s"$/.test(value ?? ''));
};

type Asked = { readonly method: string; readonly path: string; readonly body: string | Buffer | undefined };

const read = (input: Buffer): Asked => {
  try {
    const { method, path, body } = Object(JSON.parse(input.toString()));
    const isToken = METHODS.includes(method) && method !== 'CONNECT';
    const isPath = typeof path === 'string' && /^\/[!-~]*$/.test(path);
    if (isToken && isPath) return { method, path, body: body === undefined ? undefined : JSON.stringify(body) };
  } catch {
    // not JSON, or too deep to be written again
  }
  return { method: 'POST', path: '/sandbox/events', body: input };
};

export const openControl = async (): Promise<Target> => {
  let sample: SampleRunner = await startSampleRunner({ events: [] });
  const control = createControl(() => sample.runner);
  const listener = await openOpsListener({
    host: '127.0.0.1',
    port: 0,
    checks: {},
    metrics: async () => '',
    further: { path: '/sandbox', handle: control },
    observe: () => {},
  });
  const { port } = new URL(listener.url);
  const ask = ({ method, path, body }: Asked): Promise<{ readonly status: number; readonly text: string }> =>
    new Promise((resolve, reject) => {
      // Node writes a body of DELETE without a length, as the beginning of another request.
      const headers =
        body === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
      const sent = httpRequest({ port, host: '127.0.0.1', method, path, headers }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text })).on('error', reject);
      });
      sent.on('error', reject).end(body);
    });
  const startAgain = async (): Promise<void> => {
    await sample.runner.stop();
    sample = await startSampleRunner({ events: [] });
  };
  return {
    seeds: seeds.map((one) => Buffer.from(JSON.stringify(one))),
    words: [...eventTypes, '/sandbox/', 'POST', 'GET', '"at":', '"for":', 'ETH/USD', '10s', '-1s', '{}', '[]', 'null'],
    json: 'value',
    run: async (input) => {
      const asked = read(input);
      if (isLong(String(asked.body))) return 'a long step';
      const { status, text } = await ask(asked);
      assert.ok(status < 500, `answered ${status}: ${text.slice(0, 200)}`);
      if (asked.method === 'HEAD') return `${status} HEAD`;
      const body = Object(JSON.parse(text));
      if (status !== 200) {
        assert.ok(typeof body.error === 'string' && typeof body.code === 'string', 'a problem has no error or no code');
        assert.ok(text.length < 4_000, 'a problem repeats the whole request');
        return `${status} ${body.code} ${shapeOf(body.error)}`;
      }
      parseScenario(JSON.parse(JSON.stringify(sample.runner.record()))); // it throws unless the record is a scenario
      const types = Array.isArray(body.events) ? body.events.map((event: unknown) => Object(event).type) : [];
      if (asked.method === 'POST') await startAgain();
      return `${status} ${asked.path.slice(0, 20)} ${[...new Set(types)].join().slice(0, 80)}`;
    },
    check: async () => {
      const { status } = await ask({ method: 'GET', path: '/sandbox', body: undefined });
      assert.equal(status, 200, 'the control API does not answer');
    },
    close: async () => {
      await sample.runner.stop();
      await listener.close(0);
    },
  };
};
