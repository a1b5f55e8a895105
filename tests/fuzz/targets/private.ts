// Requests to the private listener as bytes: ingest, resume, probes. A `t` as the first byte puts the right token after the first line.
import assert from 'node:assert/strict';
import { parseFeedId } from '@sealpost/protocol';
import { createStoreMemory, openStore } from '../../../server/src/store/open.ts';
import { exchange, head } from '../../support/raw-http.ts';
import { openPrivateListener, openRunningIngest, testStream } from '../../support/running-ingest.ts';
import { createMaterial, reportJsonOf } from '../material.ts';
import type { Target } from '../target.ts';

const token = 'a-token-of-the-private-listener';

const withToken = (input: Buffer): Buffer => {
  const text = input.toString('latin1');
  const end = text.indexOf('\r\n');
  return end === -1
    ? input
    : Buffer.from(`${text.slice(0, end)}\r\nAuthorization: Bearer ${token}${text.slice(end)}`, 'latin1');
};

const post = (path: string, body: string, ...lines: readonly string[]): string =>
  head(
    `POST ${path} HTTP/1.1`,
    'Host: a',
    'Connection: close',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...lines,
  ) + body;

export const openPrivate = async (): Promise<Target> => {
  const { network, reports } = await createMaterial();
  const json = reports.slice(0, 2).map(reportJsonOf);
  const memory = createStoreMemory();
  const running = await openRunningIngest(
    json.map(({ feedID }) => testStream(parseFeedId(feedID))),
    new Map([[network.signerSet.configDigest, network.signerSet]]),
    () => 1_764_000_000_000,
    {},
    1,
    () => openStore('memory:', 'write', { memory }),
  );
  const listener = await openPrivateListener(running.ingest, token, { resume: async () => [] });
  const port = Number(new URL(listener.url).port);
  const lines = json.map((one) => JSON.stringify(one)).join('\n');
  const resume = JSON.stringify({
    source: 'https://a.test',
    feedIDs: json.map(({ feedID }) => feedID),
    from: 1,
    restart: false,
    filled: {},
  });
  const seeds = [
    post('/ingest', lines),
    post('/ingest/resume', resume),
    head('POST /ingest HTTP/1.1', 'Host: a', 'Connection: close', 'Transfer-Encoding: chunked').concat(
      `${lines.length.toString(16)}\r\n${lines}\r\n0\r\n\r\n`,
    ),
    ...['/livez', '/readyz', '/metrics', '/ingest'].map((path) =>
      head(`GET ${path} HTTP/1.1`, 'Host: a', 'Connection: close'),
    ),
  ];
  const options = { halfClose: true, answersMax: 8 };
  return {
    seeds: seeds.flatMap((text) => [Buffer.from(`t${text}`), Buffer.from(`u${text}`)]),
    words: [
      '\r\n',
      'Content-Length: 5',
      'Transfer-Encoding: chunked',
      'Expect: 100-continue',
      'POST',
      'GET',
      '/ingest',
      '/ingest/resume',
      '[',
      '{',
      '"source"',
      '"filled"',
      '"from"',
    ],
    run: async (input) => {
      const bytes = input[0] === 0x74 ? withToken(input.subarray(1)) : input.subarray(1);
      const sent = await exchange(port, bytes, options).catch(() => exchange(port, bytes, options));
      // Results of ingest come in chunks, which are not taken apart.
      const answers = sent.answers.filter(({ status }) => !Number.isNaN(status));
      (running.events as unknown[]).length = 0;
      for (const { status, body } of answers) {
        assert.ok(status < 500, `answered ${status}: ${body.slice(0, 200)}`);
        if (status >= 400 && !(body === '' && input.includes('HEAD')))
          assert.equal(typeof JSON.parse(body).code, 'string', 'an error has no code');
      }
      return answers
        .map(({ status, body }) => `${status} ${/"code":"(\w+)"/.exec(body)?.[1] ?? ''}`)
        .slice(0, 3)
        .join(' / ');
    },
    check: async () => {
      const { answers } = await exchange(port, head('GET /livez HTTP/1.1', 'Host: a', 'Connection: close'));
      assert.equal(answers[0]?.status, 200, 'the private listener does not answer');
    },
    close: async () => {
      await listener.close(0);
      await running.close();
    },
  };
};
