import { expect, test } from 'vitest';
import { createStart } from './started.fixture.ts';

const start = createStart();

test('sandbox: accounts read what they are entitled to, and hidden streams only where they are named', async () => {
  const streams = ['ETH/USD', 'BTC/USD', { name: 'OWN/USD', hidden: true }];
  const accounts = { alice: ['public'], bob: ['BTC/USD', 'OWN/USD'], carol: [] };
  const sandbox = await start({ streams, accounts, seed: 'mine' });
  for (const stream of ['ETH/USD', 'BTC/USD', 'OWN/USD']) await sandbox.push(stream, 1);
  const readable = async (name: string): Promise<readonly string[]> => {
    const names: string[] = [];
    for (const stream of ['ETH/USD', 'BTC/USD', 'OWN/USD']) {
      const read = sandbox.accounts[name]?.client.latest(sandbox.feedId(stream));
      await read?.then(
        () => names.push(stream),
        (error: unknown) => expect(error).toMatchObject({ code: 'stream_not_accessible' }),
      );
    }
    return names;
  };
  expect(await readable('alice')).toEqual(['ETH/USD', 'BTC/USD']);
  expect(await readable('bob')).toEqual(['BTC/USD', 'OWN/USD']);
  expect(await readable('carol')).toEqual([]);
  expect((await sandbox.client.latest(sandbox.feedId('OWN/USD'))).report.feedID).toBe(sandbox.feedId('OWN/USD'));
  const again = await start({ streams, accounts, seed: 'mine' });
  expect(again.accounts.bob?.secret).toBe(sandbox.accounts.bob?.secret);
  expect(again.accounts.bob?.secret).not.toBe(again.accounts.alice?.secret);
  await expect(start({ streams, accounts: { dave: ['DOGE/USD'] } })).rejects.toMatchObject({
    argument: 'accounts.dave',
    message: expect.stringMatching(/^accounts\.dave: No stream is named "DOGE\/USD".* Or write public\. Streams: /),
  });
});
