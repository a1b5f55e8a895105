import { expect, test } from 'vitest';
import { StoreError } from '../store/store.ts';
import { createKeyedQueue, type QueueParts } from './queue.ts';

type Sender = { readonly name: string };
type Parts = QueueParts<Sender, string, string, string>;

/** Resolves once everything has happened that waits for nothing else. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const createGate = () => {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open: () => open() };
};

const openQueue = (parts: Partial<Parts> = {}) => {
  const prepared: string[] = [];
  const batches: string[][] = [];
  const queue = createKeyedQueue<Sender, string, string, string>({
    itemsMax: 100,
    preparingMax: 4,
    pieceMax: 2,
    batchMax: 4,
    ...parts,
    prepare: async (items) => {
      prepared.push(items.join(''));
      await parts.prepare?.(items);
      return items;
    },
    finish: async (batch) => {
      batches.push(batch.map(({ items }) => items.join('')));
      return (
        (await parts.finish?.(batch)) ?? batch.map(({ items }) => ({ status: 'fulfilled', value: items.join('') }))
      );
    },
  });
  return { queue, prepared, batches };
};

test('queue: jobs of a sender are finished in order, however long each takes to prepare', async () => {
  const slow = createGate();
  const { queue, batches } = openQueue({
    prepare: async (items) => {
      if (items.includes('a')) await slow.passed;
      return items;
    },
  });
  const sender = { name: 'one' };
  const results = ['abc', 'd', 'e'].map((text) => queue.submit([...text], sender));
  await settled();
  expect(batches).toEqual([]);
  slow.open();
  expect(await Promise.all(results)).toEqual(['abc', 'd', 'e']);
  expect(batches).toEqual([['abc', 'd'], ['e']]);
});

test('queue: senders are prepared in turn, a piece each, and one that is stuck keeps none from the others', async () => {
  const stuck = createGate();
  const { queue, prepared } = openQueue({
    prepare: async (items) => {
      if (items[0] === 'a') await stuck.passed;
      return items;
    },
  });
  const long = queue.submit([...'aabbccdd'], { name: 'long' });
  expect(await queue.submit([...'xy'], { name: 'short' })).toBe('xy');
  expect(prepared).toEqual(['aa', 'bb', 'cc', 'xy', 'dd'].slice(0, prepared.length));
  expect(prepared).toContain('xy');
  stuck.open();
  expect(await long).toBe('aabbccdd');
});

test('queue: while a batch is being finished, what is prepared meanwhile makes up the next one, a job of each sender in turn', async () => {
  const first = createGate();
  const { queue, batches } = openQueue({
    preparingMax: 100,
    finish: async (batch) => {
      if (batches.length === 1) await first.passed;
      return batch.map(({ items }) => ({ status: 'fulfilled', value: items.join('') }));
    },
  });
  const [one, two] = [{ name: 'one' }, { name: 'two' }];
  const results = ['a', 'b', 'c', 'd', 'e'].map((text) => queue.submit([text], one));
  results.push(...['x', 'y'].map((text) => queue.submit([text], two)));
  await settled();
  expect(batches).toEqual([['a']]);
  first.open();
  await Promise.all(results);
  expect(batches).toEqual([['a'], ['x', 'b', 'y', 'c'], ['d', 'e']]);
});

test('queue: a full one takes no more; a sender leaves room for another, and a job longer than the queue passes alone', async () => {
  const gate = createGate();
  const { queue } = openQueue({
    itemsMax: 8,
    finish: async (batch) => {
      await gate.passed;
      return batch.map(({ items }) => ({ status: 'fulfilled', value: items.join('') }));
    },
  });
  const entered: string[] = [];
  const submit = (text: string, sender: Sender) => queue.submit([...text], sender, () => void entered.push(text));
  const [greedy, other] = [{ name: 'greedy' }, { name: 'other' }];
  const results = ['ab', 'cd', 'ef', 'gh'].map((text) => submit(text, greedy));
  results.push(submit('1234', other), submit('56', other));
  await settled();
  expect(entered).toEqual(['ab', 'cd', '1234']);
  gate.open();
  expect(await Promise.all(results)).toEqual(['ab', 'cd', 'ef', 'gh', '1234', '56']);
  expect(await submit('0123456789', greedy)).toBe('0123456789');
});

test('queue: when a job cannot be prepared, it fails, and what its sender has behind it; nothing else', async () => {
  const { queue, batches } = openQueue({
    prepare: async (items) => {
      if (items.includes('!')) throw new Error('broken');
      return items;
    },
  });
  const sender = { name: 'one' };
  const results = await Promise.allSettled([
    queue.submit(['a'], sender),
    queue.submit([...'bc!d'], sender),
    queue.submit(['e'], sender),
    queue.submit(['x'], { name: 'two' }),
    queue.submit(['y']),
  ]);
  expect(results).toMatchObject([
    { value: 'a' },
    { reason: { message: 'broken' } },
    { reason: { code: 'store_unavailable' } },
    { value: 'x' },
    { value: 'y' },
  ]);
  expect(batches.flat().sort()).toEqual(['a', 'x', 'y']);
  await expect(queue.submit(['f'], sender)).rejects.toMatchObject({ code: 'store_unavailable' });
});

test('queue: when the store fails, everything fails that was submitted by then; later jobs without a key are tried again', async () => {
  let isFailing = true;
  const { queue } = openQueue({
    itemsMax: 2,
    finish: async (batch) => {
      if (isFailing) throw new StoreError('store_disk_full', 'full');
      return batch.map(({ items }) => ({ status: 'fulfilled', value: items.join('') }));
    },
  });
  const results = await Promise.allSettled([
    queue.submit(['a'], { name: 'one' }),
    queue.submit(['b']),
    queue.submit(['c']),
    queue.submit(['d'], { name: 'two' }),
  ]);
  expect(results.map((one) => one.status === 'rejected' && one.reason.code)).toEqual([
    'store_disk_full',
    'store_unavailable',
    'store_unavailable',
    'store_unavailable',
  ]);
  isFailing = false;
  expect(await queue.submit(['b'])).toBe('b');
});

test('queue: a job whose own end fails, fails alone', async () => {
  const { queue } = openQueue({
    preparingMax: 100,
    finish: async (batch) =>
      batch.map(({ items: [text = ''] }) =>
        text === '!' ? { status: 'rejected', reason: new Error('own') } : { status: 'fulfilled', value: text },
      ),
  });
  const results = await Promise.allSettled([
    queue.submit(['!'], { name: 'one' }),
    queue.submit(['b'], { name: 'two' }),
  ]);
  expect(results).toMatchObject([{ reason: { message: 'own' } }, { value: 'b' }]);
});

test('queue: a sender that leaves gives its place up, except for what is being finished', async () => {
  const gate = createGate();
  const { queue, batches } = openQueue({
    itemsMax: 4,
    batchMax: 1,
    finish: async (batch) => {
      await gate.passed;
      return batch.map(({ items }) => ({ status: 'fulfilled', value: items.join('') }));
    },
  });
  const sender = { name: 'one' };
  const results = ['a', 'b', 'c'].map((text) => queue.submit([text], sender));
  await settled();
  queue.leave(sender);
  const other = queue.submit([...'123'], { name: 'two' });
  await expect(queue.submit(['d'], sender)).rejects.toMatchObject({ code: 'store_stopped' });
  gate.open();
  const [first, ...dropped] = await Promise.allSettled(results);
  expect(first).toMatchObject({ value: 'a' });
  for (const one of dropped) expect(one).toMatchObject({ reason: { code: 'store_stopped' } });
  expect(await other).toBe('123');
  expect(batches).toEqual([['a'], ['123']]);
});

test('queue: closing finishes what was submitted, that which waits for room too, and takes no more', async () => {
  const { queue } = openQueue({ itemsMax: 2 });
  const results = ['a', 'b', 'c'].map((text) => queue.submit([text], { name: text }));
  const closed = queue.close();
  await expect(queue.submit(['d'])).rejects.toMatchObject({ code: 'store_stopped' });
  expect(await Promise.race([closed.then(() => 'closed'), Promise.all(results)])).toEqual(['a', 'b', 'c']);
  await closed;
});

test('queue: whatever is slow and whatever leaves, each sender gets its results in order, and no place is lost', async () => {
  let seed = 7;
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed % below;
  };
  const pause = async (): Promise<void> => {
    for (let i = random(4); i > 0; i -= 1) await settled();
  };
  let [held, most] = [0, 0];
  const finished = new Map<string, number[]>();
  const { queue } = openQueue({
    itemsMax: 12,
    prepare: async (items) => {
      await pause();
      return items;
    },
    finish: async (batch) => {
      await pause();
      for (const { key, items } of batch) {
        finished.set(`${key?.name}`, [...(finished.get(`${key?.name}`) ?? []), Number(items[0])]);
        if (key?.name !== 'leaver') held -= items.length;
      }
      return batch.map(() => ({ status: 'fulfilled', value: '' }));
    },
  });
  const send = async (sender: Sender): Promise<void> => {
    for (let i = 0; i < 40; i += 1) {
      const size = 1 + random(5);
      const entered = new Promise<void>((resolve) => {
        const done = queue.submit(Array<string>(size).fill(String(i)), sender, () => {
          if (sender.name !== 'leaver') held += size;
          most = Math.max(most, held);
          resolve();
        });
        done.catch(() => {}); // of the one that leaves
      });
      await Promise.race([entered, sender.name === 'leaver' && i === 20 ? settled() : entered]);
      if (sender.name === 'leaver' && i === 20) return queue.leave(sender);
    }
  };
  await Promise.all(['a', 'b', 'c', 'leaver'].map((name) => send({ name })));
  await queue.close();
  expect(most).toBeLessThanOrEqual(12);
  for (const name of ['a', 'b', 'c']) expect(finished.get(name)).toEqual(Array.from({ length: 40 }, (_, i) => i));
});
