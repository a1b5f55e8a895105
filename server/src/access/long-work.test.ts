import { expect, test, vi } from 'vitest';
import { ClientGoneError, createLongWork, runForClient } from './long-work.ts';

const create = () => createLongWork(() => performance.now());

/** Work that ends when it is told to. */
const openWork = () => {
  let [end, fail] = [(): void => {}, (_: Error): void => {}];
  const ended = new Promise<void>((resolve, reject) => {
    [end, fail] = [resolve, reject];
  });
  return { end, fail, work: () => ended };
};

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('long work: one piece of an account at a time; another account does not wait for it', async () => {
  const { run } = create();
  const order: string[] = [];
  const first = openWork();
  const running = [
    run('a', async () => {
      await first.work();
      order.push('first of a');
    }),
    run('a', async () => void order.push('second of a')),
    run('b', async () => void order.push('b')),
  ];
  await turn();
  expect(order).toEqual(['b']);
  first.end();
  await Promise.all(running);
  expect(order).toEqual(['b', 'first of a', 'second of a']);
});

test('long work: a failure frees its slot and fails only its own caller', async () => {
  const { run, slice } = create();
  const first = openWork();
  const failing = run('a', first.work);
  const next = run('a', async () => 'went on');
  first.fail(new Error('gone'));
  await expect(failing).rejects.toThrow('gone');
  expect(await next).toBe('went on');
  await expect(slice(() => Promise.reject(new Error('unread')))).rejects.toThrow('unread');
  expect(await slice(async () => 'read')).toBe('read');
});

test('long work: waiting work is bounded per account, and what waits already still runs', async () => {
  const { run } = create();
  const first = openWork();
  const running = Array.from({ length: 4 }, () => run('a', first.work, 4));
  await expect(run('a', first.work, 4)).rejects.toMatchObject({ code: 'rate_limited' });
  expect(await run('b', async () => 'done', 4)).toBe('done');
  first.end();
  await Promise.all(running);
  expect(await run('a', async () => 'done')).toBe('done');
});

test('long work: slices of all accounts run one at a time, in turn, and the loop serves others in between', async () => {
  const { run, slice } = create();
  const order: string[] = [];
  let served = 0;
  const serve = setInterval(() => served++, 1);
  const busy = async (isOver: () => boolean, name: string): Promise<void> => {
    while (!isOver()) order.length;
    order.push(name);
  };
  const work = (name: string) =>
    run(name, async () => {
      for (let i = 0; i < 10; i++) await slice((isOver) => busy(isOver, name));
    });
  await Promise.all(['a', 'b'].map(work));
  clearInterval(serve);
  expect(order).toEqual(Array.from({ length: 10 }, () => ['a', 'b']).flat());
  expect(served).toBeGreaterThanOrEqual(15);
});

test('long work: a request stops between slices once its client has left, and the account’s next one runs', async () => {
  const longWork = create();
  const client = { destroyed: false };
  let slices = 0;
  const endless = runForClient(longWork, 'a', client, async (slice) => {
    for (;;) {
      await slice(async () => {
        slices += 1;
        client.destroyed = slices === 3;
      });
    }
  });
  const next = runForClient(longWork, 'a', { destroyed: false }, (slice) => slice(async () => 'answered'));
  await expect(endless).rejects.toThrow(ClientGoneError);
  expect([slices, await next]).toEqual([3, 'answered']);
});

test('long work: what never ends holds up neither its account nor the slices of others for more than 30 s', async () => {
  vi.useFakeTimers();
  try {
    const { run, slice } = create();
    const never = (): Promise<never> => new Promise(() => {});
    void run('a', () => slice(never), 2);
    const ended: string[] = [];
    const after = [
      run('a', async () => void ended.push('a'), 2),
      run('b', () => slice(async () => void ended.push('b'))),
    ];
    await vi.advanceTimersByTimeAsync(29_000);
    expect(ended).toEqual([]);
    await vi.advanceTimersByTimeAsync(3_000);
    await Promise.all(after);
    expect(ended.sort()).toEqual(['a', 'b']);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});
