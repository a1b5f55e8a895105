import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createControl } from './control.ts';
import { type SampleRunner, startSampleRunner } from './scenario-runner.fixture.ts';
import type { ScenarioRunner } from './scenario-runner.ts';

let sample: SampleRunner;
let runner: ScenarioRunner | undefined;
const control = createControl(() => runner);
const server = createServer((request, response) => void control(request, response));
beforeAll(async () => {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  sample = await startSampleRunner({ events: [] });
});
afterAll(async () => {
  await sample.runner.stop();
  server.close();
  server.closeAllConnections();
});

type Reply = { readonly status: number; readonly body: Record<string, unknown> };

/** Asks with any headers, which fetch does not let a program set. */
const ask = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const { port } = server.address() as AddressInfo;
    const json = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
    const type = json === undefined ? {} : { 'Content-Type': 'application/json' };
    const sent = httpRequest(
      { port, host: '127.0.0.1', method, path, headers: { ...type, ...headers } },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString()) }),
        );
      },
    );
    sent.on('error', reject);
    sent.end(json);
  });

test('control: before the sandbox has started, the answer is 503', async () => {
  expect(await ask('GET', '/sandbox')).toMatchObject({ status: 503, body: { code: 'starting' } });
  runner = sample.runner;
});

test('control: events are set, shown, recorded and cleared', async () => {
  const set = await ask('POST', '/sandbox/events', [
    { type: 'speed', speed: 5 },
    { type: 'fault', fault: 'status=503,id=five' },
  ]);
  expect(set).toMatchObject({
    status: 200,
    body: { events: [{ type: 'speed' }, { type: 'fault' }], state: { speed: 5 } },
  });
  expect(await ask('POST', '/sandbox/events', { type: 'step', by: '2s' })).toMatchObject({
    body: { state: { time: '2026-03-13T14:30:02.000Z', paused: true, reports: { stored: 2, rejected: 0 } } },
  });
  expect(await ask('GET', '/sandbox')).toMatchObject({ status: 200, body: { faults: [{ id: 'five' }] } });
  expect(await ask('DELETE', '/sandbox/faults/five')).toEqual({ status: 200, body: { removed: true } });
  expect(await ask('DELETE', '/sandbox/faults/five')).toMatchObject({ status: 404, body: { code: 'fault_not_found' } });
  expect(await ask('GET', '/sandbox/record')).toMatchObject({
    body: { events: [{ type: 'speed' }, { type: 'fault' }, { type: 'remove', id: 'five' }] },
  });
  expect(await ask('GET', '/sandbox/schema')).toMatchObject({ body: { title: 'Sealpost sandbox scenario' } });
});

test('control: an error names the field, and nothing of the request is done', async () => {
  const before = (await ask('GET', '/sandbox')).body.set;
  const wrong = await ask('POST', '/sandbox/events', [{ type: 'rotate' }, { type: 'jump', streams: 'ETH/USD' }]);
  expect(wrong).toMatchObject({ status: 400, body: { code: 'malformed_argument', field: '[1].percent' } });
  for (const body of ['{', '7', '[]', '""', 'null'])
    expect((await ask('POST', '/sandbox/events', body)).status).toBe(400);
  expect((await ask('POST', '/sandbox/events', 'x'.repeat(1_048_577)).catch(() => ({ status: 413 }))).status).toBe(413);
  expect((await ask('GET', '/sandbox')).body.set).toEqual(before);
  expect(await ask('GET', '/sandbox/nothing')).toMatchObject({ status: 404, body: { code: 'route_not_found' } });
  expect(await ask('PUT', '/sandbox')).toMatchObject({ status: 405, body: { code: 'method_not_allowed' } });
});

test('control: what a form of a web page can send is not JSON, and is rejected', async () => {
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', ''])
    expect((await ask('POST', '/sandbox/events', { type: 'pause' }, { 'Content-Type': type })).status).toBe(415);
});
