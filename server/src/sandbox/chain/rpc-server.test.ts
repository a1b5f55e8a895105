import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { openRpcServer, type RpcServerOptions } from './rpc-server.ts';

const open = async (options: Omit<RpcServerOptions, 'port'>) => {
  const server = await openRpcServer({ port: 0, ...options });
  const call = async (calls: unknown) =>
    (await fetch(server.url, { method: 'POST', body: JSON.stringify(calls) })).json() as Promise<unknown>;
  return { ...server, call };
};
const read = { jsonrpc: '2.0', id: 1, method: 'eth_chainId' };
/** More than a busy machine takes to begin a call. */
const answerMaxMs = 1_000;
const timedOut = { jsonrpc: '2.0', id: 1, error: { code: -32_002, message: 'The request timed out after 1 s.' } };

test('rpc server: a call that is not answered in time fails, and the rest of its batch is not begun', async () => {
  let begun = 0;
  const answer = () => {
    begun += 1;
    return begun === 1 ? Promise.resolve({ result: '0x1' }) : new Promise<never>(() => {});
  };
  const server = await open({ answer, answerMaxMs });
  expect(await server.call([read, read, read])).toEqual([{ jsonrpc: '2.0', id: 1, result: '0x1' }, timedOut, timedOut]);
  expect(begun).toBe(2);
  expect(await server.call(read)).toEqual(timedOut);
  await server.close();
});

test('rpc server: a chain with 200 unanswered calls rejects others until it answers', async () => {
  const waiting: (() => void)[] = [];
  const answer = () => new Promise<{ result: string }>((resolve) => waiting.push(() => resolve({ result: '0x1' })));
  const server = await open({ answer, answerMaxMs });
  for (let i = 0; i < 4; i += 1) await Promise.all(Array.from({ length: 50 }, () => server.call(read)));
  const busy = { code: -32_005, message: 'The chain has 200 calls to answer. Retry later.' };
  expect(await server.call(read)).toEqual({ jsonrpc: '2.0', id: 1, error: busy });
  for (const resolve of waiting.splice(0)) resolve();
  await new Promise(setImmediate);
  expect(await server.call(read)).toEqual(timedOut);
  await server.close();
});

const large = { result: '0'.repeat(10_000_000) };
type Answered = { readonly result?: string; readonly error?: unknown };

test('rpc server: after 25 MB of answers, the other calls of a batch are not begun and have an error', async () => {
  let begun = 0;
  const answer = async () => {
    begun += 1;
    return large;
  };
  const server = await open({ answer });
  const answers = (await server.call(Array.from({ length: 6 }, (_, id) => ({ ...read, id })))) as Answered[];
  expect(answers.map(({ result }) => result?.length)).toEqual([10e6, 10e6, 10e6, undefined, undefined, undefined]);
  expect(answers[5]).toEqual({
    jsonrpc: '2.0',
    id: 5,
    error: { code: -32_005, message: 'The answers of a batch have 25 MB already. Send this call in another one.' },
  });
  expect(begun).toBe(3);
  await server.close();
});

/** Sends calls and does not read the answers. */
const callUnread = async (url: string, calls: unknown) => {
  const body = JSON.stringify(calls);
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port) });
  socket.on('error', () => {});
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.pause();
  socket.write(`POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  return socket;
};

const tooManyUnread = {
  jsonrpc: '2.0',
  id: 1,
  error: { code: -32_005, message: 'Clients have not read 64 MB of answers yet. Read them, then retry.' },
};
const lengthOf = async (answered: Promise<unknown>) => (Object(await answered) as Answered).result?.length;

test('rpc server: while clients have 64 MB of answers to read, others get only small answers', async () => {
  let isLarge = true;
  const server = await open({ answer: async () => (isLarge ? large : { result: '0x1' }) });
  const unread = await Promise.all([1, 2].map(() => callUnread(server.url, Array(3).fill(read))));
  await expect.poll(() => server.call(read)).toEqual(tooManyUnread);
  isLarge = false;
  expect(await server.call(read)).toEqual({ jsonrpc: '2.0', id: 1, result: '0x1' });
  isLarge = true;
  for (const socket of unread) socket.destroy();
  await expect.poll(() => lengthOf(server.call(read))).toBe(10_000_000);
  await server.close();
});

test('rpc server: a client that does not read its answer is disconnected, and its answer forgotten', async () => {
  const server = await open({ answer: async () => large, idleMaxMs: 6_000 });
  const unread = await Promise.all([1, 2].map(() => callUnread(server.url, Array(3).fill(read))));
  await expect.poll(() => server.call(read)).toEqual(tooManyUnread);
  await expect.poll(() => lengthOf(server.call(read)), { timeout: 30_000 }).toBe(10_000_000);
  for (const socket of unread) socket.destroy();
  await server.close();
});
