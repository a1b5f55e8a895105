// Live delivery on the real service, whose clock stands still: who is let in, what is sent, in which order, and how a connection ends.
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createEventIds } from '../server/src/live/event-id.ts';
import type { Account } from '../server/src/store/store.ts';
import { openEvents, openSocket, RefusedError, type SocketClient, signLive } from './support/live-clients.ts';
import { head, toLines } from './support/raw-http.ts';
import { type Credentials, openService, type Service } from './support/running-api.ts';
import { act, testStream } from './support/running-ingest.ts';
import { createSignedReports, millisecondStream, type SignedReports, secondStream } from './support/signed-reports.ts';

const now = 1_763_200_000;
const nowMs = now * 1_000;
const [first, second, exact, hidden] = [secondStream(1), secondStream(2), millisecondStream(3), secondStream(4)];
const streams = [testStream(first), testStream(second), testStream(exact), testStream(hidden, { hidden: true })];
let signed: SignedReports;
let service: Service;
let reader: Credentials;
let clock = now - 100_000;

/** Seconds that no test has used. */
const nextSecond = (): number => {
  clock += 10;
  return clock;
};

beforeAll(async () => {
  signed = await createSignedReports('live');
  const rules = { origins: ['001', '002'] };
  service = await openService(streams, signed.signerSets, () => nowMs, rules);
  reader = await service.addAccount(['public']);
});
afterAll(() => service.close());

const socketOf = (...feedIds: readonly string[]): string => `/api/v1/ws?feedIDs=${feedIds.join(',')}`;
const eventsOf = (...feedIds: readonly string[]): string => `/api/v1/reports/stream?feedIDs=${feedIds.join(',')}`;
const open = (target: string, who = reader, headers = {}): Promise<SocketClient> =>
  openSocket(service.url, target, who, nowMs, headers);
const refusal = async (target: string, who = reader, headers = {}): Promise<RefusedError> => {
  const outcome = await open(target, who, headers).catch((error) => error);
  if (outcome instanceof RefusedError) return outcome;
  throw new Error(`Not refused: ${outcome}`);
};
const timesOf = (client: { reports: () => readonly { observationsTimestamp: number }[] }) =>
  client.reports().map(({ observationsTimestamp }) => observationsTimestamp);
const closeAll = async (...clients: readonly SocketClient[]): Promise<void> => {
  for (const { webSocket } of clients) webSocket.close();
  await Promise.all(clients.map(({ closed }) => closed));
};

test('sockets: a report is one binary frame of exactly the bytes that REST answers', async () => {
  const client = await open(socketOf(first));
  const t = nextSecond();
  await service.append([signed.report(first, t, t), signed.report(second, t, t)]);
  await expect.poll(() => client.received.length).toBe(1);
  const { text } = await service.call(`/api/v1/reports?feedID=${first}&timestamp=${t}`);
  expect(client.received).toEqual([{ text, isBinary: true }]);
  await closeAll(client);
});

test('sockets: the second version tells milliseconds in place of seconds, and has every report of a stream that is so exact', async () => {
  const [v1, v2] = await Promise.all([open(socketOf(exact)), open(`/api/v2/ws?feedIDs=${exact}`)]);
  const ms = nextSecond() * 1_000;
  const reports = [200, 700, 1_200].map((offset) => signed.report(exact, ms + offset - 100, ms + offset));
  await service.append(reports);
  await expect.poll(() => v2.received.length).toBe(3);
  expect(v2.received.map(({ text }) => text)).toEqual(
    reports.map(
      ({ validFromMs, observationsMs, fullReport }) =>
        `{"report":{"feedID":"${exact}","validFromTimestampMs":${validFromMs},"observationsTimestampMs":${observationsMs},"fullReport":"0x${Buffer.from(fullReport).toString('hex')}"}}`,
    ),
  );
  // In seconds the second report would be as old as the first.
  expect(timesOf(v1)).toEqual([ms / 1_000, ms / 1_000 + 1]);
  await closeAll(v1, v2);
});

test('sockets: observations strictly grow within a stream, also for who came after the newer one', async () => {
  const early = await open(socketOf(first, second));
  const t = nextSecond();
  await service.append([signed.report(first, t + 4, t + 4), signed.report(first, t + 2, t + 2)]);
  await expect.poll(() => timesOf(early)).toEqual([t + 4]);
  const late = await open(socketOf(first));
  await service.append([signed.report(first, t + 3, t + 3), signed.report(second, t + 3, t + 3)]);
  await service.append([signed.report(first, t + 5, t + 5)]);
  await expect.poll(() => timesOf(late)).toEqual([t + 5]);
  await expect.poll(() => timesOf(early)).toEqual([t + 4, t + 3, t + 5]);
  await closeAll(early, late);
});

const wrong = () => ({ ...reader, secret: 'wrong' });
type Refused = { readonly name: string; readonly target: string; readonly who?: () => Credentials };
const refused: readonly Refused[] = [
  { name: 'a wrong signature', target: socketOf(first), who: wrong },
  { name: 'no stream', target: '/api/v1/ws' },
  { name: 'something that is no stream', target: socketOf('0x12') },
  { name: 'a stream that may not be read', target: socketOf(first, hidden) },
  { name: 'an unknown path', target: '/api/v1/wsx?feedIDs=1' },
  {
    name: 'more streams than are allowed',
    target: socketOf(...Array.from({ length: 101 }, (_, i) => secondStream(i + 1))),
  },
];

test.each(refused)('handshake: $name is refused as REST refuses it', async ({ target, who }) => {
  const error = await refusal(target, who?.());
  const rest = await service.call(target.replace('/ws?', '/reports/stream?').replace(/ws$/, 'reports/stream'), {
    as: who?.() ?? reader,
  });
  expect(error.status).toBe(rest.status);
  const { requestId: _id, ...body } = JSON.parse(error.body);
  const { requestId: _other, ...expected } = rest.json;
  expect(body).toEqual(expected);
  const names = (headers: object) => Object.keys(headers).filter((name) => !/^(connection|keep-alive)$/.test(name));
  expect(names(error.headers).sort()).toEqual(names(rest.headers).sort());
});

test('handshake: a stale timestamp, an unknown origin and a plain request say what is wrong', async () => {
  const target = socketOf(first);
  const stale = await openSocket(service.url, target, reader, nowMs - 5_001).catch((error) => error);
  expect([stale.status, JSON.parse(stale.body).code]).toEqual([400, 'clock_skew']);
  const origin = await refusal(target, reader, { 'X-Cll-Origin': '003' });
  expect([origin.status, JSON.parse(origin.body).code]).toEqual([400, 'unknown_origin']);
  expect((await service.call(`${target}&plain`, { as: reader })).json.code).toBe('upgrade_required');
  const handshake = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' };
  const key = { 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==' };
  const asHead = await service.call(target, { as: reader, method: 'HEAD', headers: { ...handshake, ...key } });
  expect(asHead.status).toBe(426);
  expect(asHead.headers).toMatchObject({ upgrade: 'websocket', 'sec-websocket-version': '13' });
  const named = await open(target, reader, { 'X-Cll-Origin': '002' });
  await closeAll(named);
});

/** Writes a request and reads until so many bytes of a pattern are there, or the connection ends. */
const exchange = (bytes: string, until: RegExp): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      if (!until.test(text)) return;
      socket.destroy();
      resolve(text);
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(text));
    socket.write(bytes, 'latin1');
  });

const rawHandshake = (target: string, lines: readonly string[]): string =>
  head(`GET ${target} HTTP/1.1`, 'Host: 127.0.0.1', ...lines);
const authLines = (target: string) => toLines(signLive(target, reader, nowMs));

test.each([
  [
    'Go',
    (target: string) => [
      'User-Agent: Go-http-client/1.1',
      'Connection: Upgrade',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      'Sec-WebSocket-Version: 13',
      'Upgrade: websocket',
      ...authLines(target),
      'X-Cll-Origin: 001',
    ],
  ],
  [
    'Rust',
    (target: string) => [
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      ...authLines(target).map((line) => line.replace(/^[^:]+/, (name) => name.toLowerCase())),
    ],
  ],
])('handshake: as %s sends it, byte by byte', async (_, lines) => {
  const target = `/api/v1/ws?feedIDs=${first}%2C${second}`;
  const t = nextSecond();
  const opened = () => service.events.filter(({ status }) => status === 101).length;
  const before = opened();
  const done = exchange(rawHandshake(target, lines(target)), /"\}\}$/);
  await expect.poll(opened).toBe(before + 1);
  await service.append([signed.report(second, t, t)]);
  const [answer = '', rest = ''] = (await done).split(/\r\n\r\n(.*)/s);
  expect(answer).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n/);
  expect(answer).toContain('Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
  expect(answer).toMatch(/\r\nX-Request-Id: \S+/);
  expect(answer).not.toContain('Sec-WebSocket-Extensions');
  const frame = Buffer.from(rest, 'latin1');
  // Final, binary, not masked, with a length of two bytes.
  expect([frame[0], frame[1], frame.readUInt16BE(2)]).toEqual([0x82, 126, frame.length - 4]);
  expect(JSON.parse(frame.subarray(4).toString()).report.observationsTimestamp).toBe(t);
});

test('handshake: a 426 names the protocol and its version, and says whether the connection stays open', async () => {
  const target = socketOf(first);
  const ask = (...lines: readonly string[]) =>
    exchange(rawHandshake(target, [...authLines(target), ...lines]), /upgrade_required/);
  const upgrade = ['Upgrade: websocket', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='];
  for (const [lines, connection] of [
    [[], 'Upgrade'],
    [['Connection: close'], 'Upgrade, close'],
    [['Connection: Upgrade', ...upgrade, 'Sec-WebSocket-Version: 12'], 'Upgrade, close'],
    [['Connection: Upgrade', 'Upgrade: h2c'], 'Upgrade, close'],
  ] as const) {
    const answer = await ask(...lines);
    const valuesOf = (name: string) =>
      [...answer.matchAll(new RegExp(`\\r\\n${name}: (.*)`, 'g'))].map(([, value]) => value);
    expect(answer).toMatch(/^HTTP\/1\.1 426 Upgrade Required\r\n/);
    expect(['Upgrade', 'Sec-WebSocket-Version', 'Connection'].map(valuesOf), lines.join()).toEqual([
      ['websocket'],
      ['13'],
      [connection],
    ]);
  }
});

test('handshake: without a key it is 400, of another version 426, and an offer of HTTP/2 is passed over', async () => {
  const target = socketOf(first);
  const common = () => ['Connection: Upgrade', 'Upgrade: websocket', ...authLines(target)];
  expect(await exchange(rawHandshake(target, [...common(), 'Sec-WebSocket-Version: 13']), /\}$/)).toMatch(
    /^HTTP\/1\.1 400 .*"missing_header".*"Sec-WebSocket-Key"/s,
  );
  const old = [...common(), 'Sec-WebSocket-Version: 8', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='];
  expect(await exchange(rawHandshake(target, old), /\}$/)).toMatch(/^HTTP\/1\.1 426 /);
  expect(await exchange(rawHandshake('/time', ['Connection: Upgrade', 'Upgrade: h2c']), /\}$/)).toMatch(
    /^HTTP\/1\.1 200 .*"serverTimeMs"/s,
  );
});

test.each(['', 'a,,b', 'a, b, a', 'a b', 'a/b', ',a', 'a,'])(
  'handshake: subprotocols that are no list, %j, are a 400 for the client, the log and the metrics',
  async (protocols) => {
    const target = socketOf(first);
    const lines = [
      ...['Connection: Upgrade', 'Upgrade: websocket', ...authLines(target), 'Sec-WebSocket-Version: 13'],
      ...['Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', `Sec-WebSocket-Protocol: ${protocols}`],
    ];
    expect(await exchange(rawHandshake(target, lines), /\}$/)).toMatch(
      /^HTTP\/1\.1 400 .*"malformed_header".*"Sec-WebSocket-Protocol"/s,
    );
    await expect.poll(() => service.events.at(-1)).toMatchObject({ status: 400, code: 'malformed_header' });
  },
);

test('handshake: a replay costs the account nothing, whatever it sends along, and a signature is good for one connection per origin', async () => {
  const limited = { reportStream: 2, socket: 2 };
  const who = await service.addAccount(['public'], { rateLimits: limited });
  const target = eventsOf(first);
  const t = nextSecond();
  await service.append([signed.report(first, t, t)]);
  const [id] = await idsOf((await service.store.reports.position()) - 1);
  const headers = signLive(target, who, nowMs);
  const stream = await openEvents(service.url, target, who, nowMs, undefined, headers);
  for (const lastEventId of [undefined, id, id, 'x'.repeat(22), undefined]) {
    const error = await openEvents(service.url, target, who, nowMs, lastEventId, headers).catch((refused) => refused);
    expect([error.status, JSON.parse(error.body).code]).toEqual([401, 'signature_used']);
  }
  const again = await openEvents(service.url, target, who, nowMs, id);
  await expect.poll(() => timesOf(again)).toEqual([t]);
  stream.close();
  again.close();
  const socketHeaders = signLive(socketOf(first), who, nowMs);
  const to = (origin: string) => open(socketOf(first), who, { ...socketHeaders, 'X-Cll-Origin': origin });
  const clients = [await to('001'), await to('002')];
  for (const origin of ['001', '002', '']) {
    const error = await to(origin).catch((refused) => refused);
    expect([error.status, JSON.parse(error.body).code], origin).toEqual([401, 'signature_used']);
  }
  await closeAll(...clients);
});

test('limits: the 21st connection of an account is 429, and there is room again when one closes', async () => {
  const who = await service.addAccount(['public']);
  const clients = await Promise.all(Array.from({ length: 20 }, () => open(socketOf(first), who)));
  const error = await refusal(socketOf(first), who);
  expect([error.status, JSON.parse(error.body).code]).toEqual([429, 'too_many_sockets']);
  expect(Number(error.headers['retry-after'])).toBeGreaterThanOrEqual(1);
  await closeAll(clients[0] as SocketClient);
  await expect.poll(() => open(socketOf(first), who).then(closeAll, () => 'full')).toBe(undefined);
  await closeAll(...clients.slice(1));
});

test('sockets: a ping is answered at once; a small message is ignored, a large one ends the connection', async () => {
  const client = await open(socketOf(first));
  client.webSocket.send('hello');
  client.webSocket.ping('x');
  const [echo] = await once(client.webSocket, 'pong');
  expect(String(echo)).toBe('x');
  client.webSocket.send(Buffer.alloc(1024 * 1024));
  // Too large for one message, or too many bytes in a second: whichever bound is seen first.
  expect([1008, 1009]).toContain((await client.closed).code);
});

const change = ({ userId }: Credentials, changes: Partial<Account>): Promise<void> =>
  service.store.admin.update('account', [userId], ([account]) => [{ ...(account as Account), ...changes }], act);
const revokedAt = '2026-01-02T00:00:00.000000Z';

test.each([
  ['its secret was revoked', { secrets: [{ id: 'one', sealed: '', createdAt: revokedAt, revokedAt }] }],
  ['its account was disabled', { disabledAt: revokedAt }],
  ['one of its streams may no longer be read', { entitlements: [`feed:${first}`] }],
  ['its entitlements cannot be understood', { entitlements: ['nonsense'] }],
])('access: a connection ends with 1008 when %s, and the others go on', async (_, changes) => {
  const who = await service.addAccount(['public']);
  const client = await open(socketOf(first, second), who);
  const events = await openEvents(service.url, eventsOf(first, second), who, nowMs);
  const other = await open(socketOf(first));
  await change(who, changes);
  expect((await client.closed).code).toBe(1008);
  await events.closed;
  const t = nextSecond();
  await service.append([signed.report(first, t, t)]);
  await expect.poll(() => timesOf(other)).toEqual([t]);
  await closeAll(other);
});

/** The ids of events, by position. */
const idsOf = async (...positions: readonly number[]): Promise<readonly string[]> => {
  const { encode } = createEventIds(await service.store.reports.lineage());
  return positions.map(encode);
};
const idOf = async (position: number): Promise<string> => (await idsOf(position))[0] as string; // one for each

test('events: every report has an id of its own, and the JSON of REST', async () => {
  const client = await openEvents(service.url, eventsOf(first), reader, nowMs);
  expect(client.response.headers).toMatchObject({
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
    'access-control-allow-origin': '*',
    'transfer-encoding': 'chunked',
  });
  const position = await service.store.reports.position();
  const t = nextSecond();
  // The last one is late.
  await service.append([t + 2, t + 3, t + 1].map((at) => signed.report(first, at, at)));
  const ids = await idsOf(position + 1, position + 2, position + 3);
  await expect.poll(() => client.events.map(({ id }) => id)).toEqual(ids);
  expect(timesOf(client)).toEqual([t + 2, t + 3, t + 1]);
  const rest = await service.call(`/api/v1/reports?feedID=${first}&timestamp=${t + 2}`);
  expect(`{"report":${client.events[0]?.data}}`).toBe(rest.text);
  client.close();
});

test('events: a stream goes on after the last id that was seen, late reports included, and none comes twice', async () => {
  const before = await service.store.reports.position();
  const t = nextSecond();
  const at = (offset: number) => signed.report(first, t + offset, t + offset);
  await service.append([at(3), signed.report(second, t, t), at(4)]);
  await service.append([at(1)]);
  const resumed = openEvents(service.url, eventsOf(first), reader, nowMs, await idOf(before + 1));
  const more = service.append([at(5)]);
  const client = await resumed;
  await more;
  await service.append([at(6)]);
  await expect.poll(() => timesOf(client)).toEqual([t + 4, t + 1, t + 5, t + 6]);
  expect(client.events.map(({ id }) => id)).toEqual(await idsOf(before + 3, before + 4, before + 5, before + 6));
  client.close();
});

test('events: a long way back comes whole, also to a client that offers HTTP/2', async () => {
  const before = await service.store.reports.position();
  const from = nextSecond();
  clock += 2_000;
  const template = signed.report(first, from, from);
  const at = (i: number) => ({ ...template, validFromMs: (from + i) * 1_000, observationsMs: (from + i) * 1_000 });
  const reports = Array.from({ length: 2_000 }, (_, i) => at(i));
  await service.append(reports);
  const offer = { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABkAAQCAAAAAAIAAAAA' };
  const last = await idOf(before);
  const clients = await Promise.all(
    [{}, offer].map((headers) => openEvents(service.url, eventsOf(first), reader, nowMs, last, headers)),
  );
  const expected = reports.map((_, i) => from + i);
  for (const client of clients) {
    await expect.poll(() => client.events.length).toBe(2_000);
    expect(timesOf(client)).toEqual(expected);
    client.close();
  }
});

test.each([
  ['ahead of all', (position: number) => idOf(position + 5)],
  ['of another store', async () => createEventIds({ epoch: Buffer.alloc(6), key: Buffer.alloc(16) }).encode(1)],
  ['from before ids were encrypted', async () => '1'],
])('events: an id %s is told as missed, and the stream goes on from now', async (_, lastId) => {
  const position = await service.store.reports.position();
  const client = await openEvents(service.url, eventsOf(first), reader, nowMs, await lastId(position));
  await expect.poll(() => client.events).toEqual([{ id: await idOf(position), event: 'missed', data: '{}' }]);
  const t = nextSecond();
  await service.append([signed.report(first, t, t)]);
  await expect.poll(() => timesOf(client)).toEqual([t]);
  client.close();
});

test('events: what cannot be an id is refused by name', async () => {
  const error = await openEvents(service.url, eventsOf(first), reader, nowMs, 'abc').catch((thrown) => thrown);
  expect([error.status, JSON.parse(error.body).header]).toEqual([400, 'Last-Event-ID']);
});

test('events: HEAD tells the head alone', async () => {
  const reply = await service.call(eventsOf(first), { as: reader, method: 'HEAD' });
  expect([reply.status, reply.headers['content-type'], reply.text]).toEqual([200, 'text/event-stream', '']);
});
