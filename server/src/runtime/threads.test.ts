import { Worker } from 'node:worker_threads';
import { afterEach, expect, test } from 'vitest';
import { type ChannelOptions, openChannel, type ThreadChannel } from './threads.ts';

/** Doubles numbers; ends, hangs or gets lost in a loop when told to. */
const program = `
  const { parentPort } = require('node:worker_threads');
  let factor = 2;
  parentPort.on('message', (request) => {
    if (request === 'end') process.exit(7);
    else if (request === 'throw') throw new Error('a defect');
    else if (request === 'hang') return;
    else if (request === 'loop') for (;;);
    else if (request === 'close') parentPort.close();
    else if (typeof request === 'string') factor = Number(request);
    else parentPort.postMessage({ answer: request * factor });
  });
  parentPort.postMessage({ ready: true });
`;

type Request = string | number;
const open: ThreadChannel<Request, number>[] = [];
afterEach(async () => {
  for (const { close } of open.splice(0)) await close();
});

const openDoubling = (options: Partial<ChannelOptions<Request, never>> = {}) => {
  const ended: string[] = [];
  const channel = openChannel<Request, number>({
    start: () => new Worker(program, { eval: true }),
    onEnded: (why) => void ended.push(why),
    failure: (why, wasAsked) => new Error(`${wasAsked ? 'asked' : 'not asked'}: ${why}`),
    ...options,
  });
  open.push(channel);
  return { ...channel, ended };
};

/** Asks until a thread answers again. */
const untilAnswered = async (ask: (request: Request) => Promise<number>): Promise<number> => {
  for (;;) {
    const answer = await ask(1).catch(() => undefined);
    if (answer !== undefined) return answer;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};

test('channel: answers come in the order asked', async () => {
  const { ready, ask } = openDoubling();
  await ready();
  expect(await Promise.all([1, 2, 3].map(ask))).toEqual([2, 4, 6]);
});

test.each([
  ['end', 'exit code 7'],
  ['throw', 'a defect'],
])('channel: requests to a thread that ends (%s) are rejected, and another thread replaces it', async (act, why) => {
  const { ready, ask, ended } = openDoubling({ first: () => '3' });
  await ready();
  expect(await ask(1)).toBe(3);
  const questions = ['hang', act].map((request) => ask(request));
  for (const question of questions) await expect(question).rejects.toThrow(`asked: ${why}`);
  expect(ended).toEqual([why]);
  expect(await untilAnswered(ask)).toBe(3); // it was sent what comes first
});

test('channel: a thread that ends before it is ready fails the start and is not restarted', async () => {
  let starts = 0;
  const { ready, ended } = openDoubling({
    start: () => {
      starts += 1;
      return new Worker('process.exit(3)', { eval: true });
    },
  });
  await expect(ready()).rejects.toThrow('not asked: exit code 3');
  expect([starts, ended]).toEqual([1, []]);
});

test('channel: with retriesStart, a thread that ends before it runs is reported and replaced', async () => {
  let starts = 0;
  const { ask, ended } = openDoubling({
    retriesStart: true,
    start: () => new Worker(starts++ === 0 ? 'process.exit(3)' : program, { eval: true }),
  });
  expect(await untilAnswered(ask)).toBe(2);
  expect([starts, ended]).toEqual([2, ['exit code 3']]);
});

test('channel: when starting throws, requests fail', async () => {
  const { ready, ask } = openDoubling({
    start: () => {
      throw new Error('no descriptors left');
    },
  });
  await expect(ready()).rejects.toThrow('no descriptors left');
  await expect(ask(1)).rejects.toThrow('not asked');
});

test.each(['loop', 'hang'])('channel: closing completes though the thread does not end (%s)', async (act) => {
  const { ready, ask, close, ended } = openDoubling({ closeMaxMs: 100 });
  await ready();
  const question = ask(act);
  question.catch(() => {});
  await close(act === 'hang' ? 'hang' : undefined);
  await expect(question).rejects.toThrow('asked: ');
  await expect(ask(1)).rejects.toThrow('not asked: it is closed');
  expect(ended).toEqual([]);
});

test('channel: closing twice, or after the thread has ended, completes at once', async () => {
  const { ready, ask, close } = openDoubling();
  await ready();
  await expect(ask('end')).rejects.toThrow();
  await close('close');
  await close('close');
});
