import type { RequestListener } from 'node:http';
import { SealpostError } from '@sealpost/client';
import { describe, expect, test } from 'vitest';
import { CommandError } from './failure.ts';
import { against } from './reading-sample.fixture.ts';
import { clientOptions, describeRemote, explainRemote } from './remote-client.ts';
import { runCommand } from './sample-session.fixture.ts';

const url = new URL('https://streams.example.com');
const broken = (code: string) =>
  new SealpostError('network_error', `streams.example.com cannot be reached (${code}).`, {
    cause: new TypeError('fetch failed', { cause: Object.assign(new Error('connect'), { code }) }),
  });
const refusal = (code: string, status: number, details = {}) =>
  new SealpostError(code, 'What happened.', { status, requestId: 'r-1', details });

test('clients of commands name the command and its release', () => {
  const { userAgent } = clientOptions(url, { stderr: process.stderr, nowMs: () => 0 });
  expect(userAgent).toMatch(/^sealpost\/\d+\.\d+\.\d+$/);
});

test('a server’s text cannot control the terminal', async () => {
  const evil = '\x1b]0;owned\x07\x1b[2J\nerror: pay\r\nwarning: now';
  const answer: RequestListener = (request, response) =>
    request.url?.startsWith('/api/v1/feeds')
      ? response.end(JSON.stringify({ feeds: [] }))
      : response
          .writeHead(400, { 'Content-Type': 'application/json' })
          .end(JSON.stringify({ error: evil, code: evil }));
  const userId = '7f3c1f0a-3b1e-4d27-9a55-0b8f3c1d2e4f';
  const { stderr } = await against(answer, (at) =>
    runCommand(['report', 'latest', `0x0003${'0'.repeat(60)}`, '--url', at], {
      env: { SEALPOST_USER_ID: userId, SEALPOST_SECRET: 'secret' },
    }),
  );
  expect([stderr.includes('owned'), stderr.includes('\x1b')]).toEqual([true, false]);
  expect(stderr.match(/^.*:/gm)).toEqual([expect.stringMatching(/^error: /)]); // one line, and it is ours
});

describe('a failed call', () => {
  test.each([
    ['ENOTFOUND', 'could not be resolved (ENOTFOUND).', 'Check the host name'],
    ['ECONNREFUSED', 'refused the connection (ECONNREFUSED).', 'Start the server'],
    ['UND_ERR_CONNECT_TIMEOUT', 'is unreachable (UND_ERR_CONNECT_TIMEOUT).', 'Check the network and firewall.'],
    ['EPROTO', 'failed the TLS handshake (EPROTO).', 'Use http://'],
    ['CERT_HAS_EXPIRED', 'has an invalid certificate (CERT_HAS_EXPIRED).', 'Renew it'],
    ['ECONNRESET', 'closed the connection (ECONNRESET).', 'If it uses TLS, use https://'],
  ])('connection: %s is explained', (code, problem, advice) => {
    expect(describeRemote(broken(code), url)).toEqual({
      exitCode: 3,
      problem: `streams.example.com ${problem}`,
      advice: expect.stringContaining(advice),
    });
  });

  test.each([
    [refusal('unauthorized', 401), 1, 'unauthorized: What happened. (request r-1)', 'Check the user ID and secret'],
    [
      refusal('clock_skew', 400),
      1,
      'clock_skew: What happened. (request r-1)',
      'sealpost doctor https://streams.example.com',
    ],
    [refusal('rate_limited', 429), 1, 'rate_limited: What happened. (request r-1)', 'Run the command again'],
    [refusal('store_unavailable', 503), 3, 'store_unavailable: What happened. (request r-1)', 'Try again'],
    [refusal('of_a_later_release', 409), 1, 'of_a_later_release: What happened. (request r-1)', ''],
    [
      new SealpostError('http_404', 'streams.example.com returned 404.', { status: 404 }),
      3,
      'streams.example.com returned 404.',
      'any proxy in front',
    ],
    [
      new SealpostError('timeout', 'No answer within 30000 ms.'),
      3,
      'streams.example.com: No answer within 30000 ms.',
      'Check the server and the network.',
    ],
    [
      new SealpostError('unexpected_answer', 'It is no catalog.', { status: 200 }),
      3,
      'streams.example.com: It is no catalog.',
      'Check the address',
    ],
    [
      new SealpostError('malformed_argument', 'feedID is wrong.'),
      2,
      'streams.example.com: feedID is wrong.',
      'Change the request',
    ],
  ])('%s', (error, exitCode, problem, advice) => {
    expect(describeRemote(error, url)).toEqual({ exitCode, problem, advice: expect.stringContaining(advice) });
  });

  test('an interruption is not a failure of the server, and other errors are not explained', async () => {
    const fail = (error: Error) => () => Promise.reject(error);
    const aborted = new SealpostError('aborted', 'The call was aborted.', { cause: 'SIGTERM' });
    await expect(explainRemote(url, fail(aborted))).rejects.toEqual(new CommandError(143, 'Interrupted.'));
    await expect(explainRemote(url, fail(new RangeError('ours')))).rejects.toThrow(RangeError);
    await expect(explainRemote(url, fail(refusal('unauthorized', 401)))).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringMatching(/^unauthorized: What happened\. \(request r-1\) Check /),
    });
  });
});
