import { expect, test } from 'vitest';
import { openRpcServer, type RpcServerOptions } from './rpc-server.ts';

const open = async (options: Omit<RpcServerOptions, 'port'>) => {
  const server = await openRpcServer({ port: 0, ...options });
  const call = async (calls: unknown) =>
    (await fetch(server.url, { method: 'POST', body: JSON.stringify(calls) })).json() as Promise<unknown>;
  return { ...server, call };
};
const read = { jsonrpc: '2.0', id: 1, method: 'eth_chainId' };
const timedOut = { jsonrpc: '2.0', id: 1, error: { code: -32_002, message: 'The request timed out after 0.05 s.' } };

test('rpc server: a call that is not answered in time fails, and the rest of its batch is not begun', async () => {
  let begun = 0;
  const answer = () => {
    begun += 1;
    return begun === 1 ? Promise.resolve({ result: '0x1' }) : new Promise<never>(() => {});
  };
  const server = await open({ answer, answerMaxMs: 50 });
  expect(await server.call([read, read, read])).toEqual([{ jsonrpc: '2.0', id: 1, result: '0x1' }, timedOut, timedOut]);
  expect(begun).toBe(2);
  expect(await server.call(read)).toEqual(timedOut);
  await server.close();
});

test('rpc server: a chain with 200 unanswered calls rejects others until it answers', async () => {
  const waiting: (() => void)[] = [];
  const answer = () => new Promise<{ result: string }>((resolve) => waiting.push(() => resolve({ result: '0x1' })));
  const server = await open({ answer, answerMaxMs: 50 });
  for (let i = 0; i < 4; i += 1) await Promise.all(Array.from({ length: 50 }, () => server.call(read)));
  const busy = { code: -32_005, message: 'The chain has 200 calls to answer. Retry later.' };
  expect(await server.call(read)).toEqual({ jsonrpc: '2.0', id: 1, error: busy });
  for (const resolve of waiting.splice(0)) resolve();
  await new Promise(setImmediate);
  expect(await server.call(read)).toEqual(timedOut);
  await server.close();
});
