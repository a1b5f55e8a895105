import { createClient, decode, verify } from '@sealpost/client';
import { expect, test } from 'vitest';
import { at, createStart, t0 } from './started.fixture.ts';

const start = createStart();

test.each([
  ['a version', { schema: 99 }, /^0x0063/],
  ['a version of a network in milliseconds', { feedId: `0x1fff${'ab'.repeat(30)}` }, /^0x1fff/],
])(
  'push: reports of %s that nobody knows are read, streamed and verified, and decoded by no client',
  async (_, schema, prefix) => {
    const sandbox = await start({ streams: [{ name: 'NEW/USD', ...schema }], at });
    const feedId = sandbox.feedId('NEW/USD');
    expect(feedId).toMatch(prefix);
    const client = createClient({ baseUrl: sandbox.url, userId: sandbox.userId, secret: sandbox.secret });
    const streamed = client.stream([feedId])[Symbol.asyncIterator]();
    const next = streamed.next();
    await sandbox.subscribed('NEW/USD');
    const pushed = await sandbox.push('NEW/USD', '4200.55', { fields: { nativeFee: '0.5' } });
    expect((await next).value).toEqual(pushed);
    await streamed.return?.();
    expect((await client.latest(feedId)).report).toEqual(pushed);
    expect([pushed.feedID, pushed.observationsTimestamp]).toEqual([feedId, t0]);
    expect(verify(pushed, sandbox.signers)).toMatchObject({ ok: true, decoded: undefined });
    expect(() => decode(pushed)).toThrow(expect.objectContaining({ code: 'unknown_schema' }));
    expect(pushed.fullReport).toContain((420_055n * 10n ** 16n).toString(16)); // the price, for a client that will know it
    await expect(sandbox.push('NEW/USD', 1, { bid: 1 })).rejects.toMatchObject({ argument: 'bid' });
  },
);
