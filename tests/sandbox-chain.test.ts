// The real program `sealpost sandbox --chain`: reports of the sandbox are verified on its chain, before and after the signers rotate.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeVerifierError, verifyCalldata } from '@sealpost/client/onchain';
import { decodeFullReport, type ReportJson } from '@sealpost/protocol';
import * as AbiParameters from 'ox/AbiParameters';
import { afterAll, expect, test } from 'vitest';
import { startChain } from '../sandbox/src/chain/chain.ts';
import { freePort } from './support/free-port.ts';
import { inFull } from './support/full-count.ts';
import { fetchSigned, startCommand } from './support/real-program.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-chain-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const startSandbox = (...args: string[]) =>
  startCommand(
    ['sandbox', '--chain', '--at', '2026-03-13T14:30:00Z', '--paused', '--past', '0', '--streams', 'ETH/USD', ...args],
    folder,
    { SEALPOST_EXPLORER: 'off', TMPDIR: folder },
  );

test('sandbox --chain: reports are valid on the chain at sandbox time, and its signer sets follow a rotation', async () => {
  const program = startSandbox('--json', '--listen', '127.0.0.1:0');
  const [line] = await program.printed(/^\{"url".*\}$/m);
  const { url, opsUrl, userId, secret, feedIds, chain } = JSON.parse(line);
  const rpc = async (method: string, ...params: unknown[]) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    return (await fetch(chain.rpcUrl, { method: 'POST', body })).json() as Promise<{
      readonly result?: `0x${string}`;
      readonly error?: { readonly data: string };
    }>;
  };
  const verify = (fullReport: string) =>
    rpc('eth_call', { to: chain.verifier, data: verifyCalldata(fullReport) }, 'latest');
  const latest = async () => {
    const answer = await fetchSigned(url, `/api/v1/reports/latest?feedID=${feedIds[0]}`, { userId, secret });
    return ((await answer.json()) as { readonly report: ReportJson }).report.fullReport;
  };
  const control = (...args: string[]) => startCommand(['sandbox', 'set', ...args, '--url', opsUrl], folder).finished;
  expect(chain).toMatchObject({ chainId: 31_337, accounts: expect.arrayContaining([expect.anything()]) });
  expect(chain.accounts).toHaveLength(5);
  const before = await latest();
  const { result = '0x' } = await verify(before);
  expect(AbiParameters.decode([{ type: 'bytes' }], result)).toEqual([decodeFullReport(before).body]);
  await control('rotate');
  await control('step', '20s');
  const after = await latest();
  expect(decodeFullReport(after).context.configDigest).not.toBe(decodeFullReport(before).context.configDigest);
  expect((await verify(after)).result).toBeDefined();
  expect(decodeVerifierError((await verify(before)).error?.data ?? '').name).toBe('DigestInactive');
  const { result: block } = await rpc('eth_getBlockByNumber', 'latest', false);
  expect(Number(Object(block).timestamp)).toBe(Date.parse('2026-03-13T14:30:20Z') / 1_000);
  // A test may use the owner's key: then the chain is behind, and the rest of the sandbox goes on.
  const [owner, other] = chain.accounts.map(({ address }: { readonly address: string }) => address);
  const toOther = `0xf2fde38b${other.slice(2).padStart(64, '0')}`; // transferOwnership(address)
  expect((await rpc('eth_sendTransaction', { from: owner, to: chain.verifier, data: toOther })).error).toBeUndefined();
  await control('rotate');
  await control('step', '5s');
  expect(await latest()).not.toBe(after);
  program.child.kill('SIGINT');
  const { code, stderr } = await program.finished;
  expect([code, stderr]).toEqual([0, expect.stringContaining('the signer sets of the local chain are not up to date')]);
  await expect(rpc('eth_chainId')).rejects.toThrow();
});

inFull('sandbox --chain: if the port of the chain is in use, nothing is left running', async () => {
  const port = await freePort();
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(port + 2, '127.0.0.1', resolve));
  try {
    const { code, stderr } = await startSandbox('--listen', `127.0.0.1:${port}`).finished;
    expect([code, stderr]).toEqual([3, expect.stringContaining(`Port ${port + 2} is in use by another program.`)]);
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
  } finally {
    other.close();
  }
});

inFull('sandbox --chain URL: the contracts are deployed on a chain that the user runs', async () => {
  const theirs = await startChain({ port: 0, signerSets: [] });
  try {
    const program = startCommand(
      ['sandbox', '--chain', theirs.rpcUrl, '--json', '--listen', '127.0.0.1:0', '--past', '0', '--streams', 'ETH/USD'],
      folder,
      { SEALPOST_EXPLORER: 'off', TMPDIR: folder },
    );
    const [line] = await program.printed(/^\{"url".*\}$/m);
    const { chain } = JSON.parse(line);
    expect(chain).toMatchObject({ chainId: 31_337, accounts: theirs.accounts.map(({ address }) => ({ address })) });
    expect(chain.rpcUrl).toBe(`${theirs.rpcUrl}/`);
    expect(chain.verifier).not.toBe(theirs.verifier);
    program.child.kill('SIGINT');
    expect((await program.finished).code).toBe(0);
  } finally {
    await theirs.close();
  }
  const { code, stderr } = await startCommand(['sandbox', '--chain', theirs.rpcUrl], folder).finished;
  expect([code, stderr]).toEqual([3, expect.stringContaining('does not answer as a JSON-RPC node (ECONNREFUSED).')]);
});
