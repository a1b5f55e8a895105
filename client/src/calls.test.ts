import { expect, test } from 'vitest';
import { scriptedFetch } from '../../tests/support/scripted-fetch.ts';
import * as calls from './calls.ts';
import { createClient } from './client.ts';

const feedId = `0x0003${'0'.repeat(59)}1`;
const report = { feedID: feedId, validFromTimestamp: 7, observationsTimestamp: 7, fullReport: '0x00' };
const account = { userId: '7f3c1f0a-3b1e-4d27-9a55-0b8f3c1d2e4f', secret: 'secret' };

test('calls: each method of the client is a function too, except those for names and latestMany', () => {
  const methods = Object.keys(createClient({ baseUrl: 'http://a.test' }));
  expect(Object.keys(calls).sort()).toEqual(
    [...methods.filter((name) => !['findStream', 'latestMany'].includes(name)), 'openRequester'].sort(),
  );
});

test('calls: a function reads with a requester, with the client’s signatures and retries', async () => {
  const { fetch, asked } = scriptedFetch([
    { status: 503, body: {} },
    { status: 200, body: { report } },
    { status: 200, body: { reports: [report] }, headers: { Link: '<x>; rel="last"' } },
  ]);
  const requester = calls.openRequester({ baseUrl: 'http://a.test', ...account, fetch, sleep: async () => {} });
  expect((await calls.latest(requester, feedId)).report).toEqual(report);
  const pages = [];
  for await (const { reports } of calls.pages(requester, feedId, { from: 7 })) pages.push(reports);
  expect(pages).toEqual([[report]]);
  expect(asked).toHaveLength(3);
  for (const { headers } of asked) expect(new Headers(headers).get('Authorization')).toBe(account.userId);
});

test('calls: a stream emits its states as events; invalid options throw at once', async () => {
  const { fetch } = scriptedFetch(() => ({ status: 401, body: { error: 'no', code: 'unauthorized', requestId: 'r' } }));
  const phases: string[] = [];
  const requester = calls.openRequester({
    baseUrl: 'http://a.test',
    ...account,
    fetch,
    onEvent: (event) => {
      if (event.kind === 'stream') phases.push(event.state.phase);
    },
  });
  await expect(calls.stream(requester, [feedId], { transport: 'poll' }).next()).rejects.toMatchObject({ status: 401 });
  expect(phases.at(-1)).toBe('closed');
  expect(() => calls.stream(requester, [])).toThrow('No feed ID is given');
  expect(() => calls.openRequester({ baseUrl: 'nonsense' })).toThrow('baseUrl');
});
