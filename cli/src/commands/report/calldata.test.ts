import { feeTokens, setConfigCalldata, verifyBulkCalldata, verifyCalldata } from '@sealpost/client/onchain';
import { toSignerSetsJson } from '@sealpost/protocol';
import { afterAll, describe, expect, test } from 'vitest';
import {
  btc,
  eth,
  first,
  hexOf,
  now,
  openReadingSample,
  second,
  signerSets,
  silent,
  third,
  wire,
} from '../../reading-sample.fixture.ts';

const { service, file, run, close } = await openReadingSample();
afterAll(close);

describe('report calldata', () => {
  const calldata = (...args: string[]) => run(['report', 'calldata', ...args]);

  test('the newest report, or the one at a time, without and with a fee token', async () => {
    const token = feeTokens[42161].native;
    expect(await calldata('BTC/USD')).toEqual({ code: 0, stdout: `${verifyCalldata(hexOf(third))}\n`, stderr: '' });
    const at = ['--at', String(now - 55), '--fee-token', 'native', '--chain', '42161'];
    expect((await calldata(btc, ...at)).stdout).toBe(`${verifyCalldata(hexOf(first), token)}\n`);
    expect(JSON.parse((await calldata(btc, '--fee-token', token, '--json')).stdout)).toEqual({
      function: 'verify(bytes,bytes)',
      feeToken: token,
      reports: 1,
      calldata: verifyCalldata(hexOf(third), token),
    });
  });

  test('several streams and several lines of a file are one verifyBulk', async () => {
    const { stdout } = await calldata(btc, eth, '--at', String(now - 45), '--json');
    expect(JSON.parse(stdout)).toMatchObject({ function: 'verifyBulk(bytes[],bytes)', feeToken: null, reports: 2 });
    const reports = file('two.ndjson', `${wire(first)}\n${hexOf(second)}\n`);
    const expected = verifyBulkCalldata([hexOf(first), hexOf(second)], feeTokens[1].link);
    const link = ['--fee-token', 'link', '--chain', '1'];
    expect((await calldata('--report', reports, ...link)).stdout).toBe(`${expected}\n`);
  });

  test('a call has at most 100 reports', async () => {
    const lines = (count: number) => file(`${count}.ndjson`, `${hexOf(first)}\n`.repeat(count));
    expect(JSON.parse((await calldata('--report', lines(100), '--json')).stdout).reports).toBe(100);
    expect(await calldata('--report', lines(101))).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('error: --report has more than 100 reports. Make several calls of them.\n'),
    });
  });

  test('a report needs no server', async () => {
    const ran = await run(['report', 'calldata', '--report', '-'], { stdin: wire(first), env: {} });
    expect(ran).toEqual({ code: 0, stdout: `${verifyCalldata(hexOf(first))}\n`, stderr: '' });
  });

  test.each([
    [[], 2, 'No report. Pass FEED, or --report with a report, a file or -.'],
    [[btc, '--report', '-'], 2, '--report cannot be combined with FEED or --at.'],
    [[btc, '--fee-token', 'link'], 2, '--fee-token link needs --chain: 1, 8453, 42161. Or give it an address.'],
    [[btc, '--fee-token', '0x12'], 2, '--fee-token is "0x12", expected an address, 0x and 40 hex digits.'],
    [[btc, '--chain', '5'], 2, '--chain has the value "5", expected 1, 8453, 42161. Or give --fee-token an address.'],
    [['--report', '0x1234'], 1, 'REPORT is not a valid report (malformed_envelope)'],
    [[btc, silent], 1, `No report of ${silent}. Leave these streams out, or change --at.`],
  ] as const)('%j is rejected', async (args, code, text) => {
    const ran = await calldata(...args);
    expect([ran.code, ran.stdout]).toEqual([code, '']);
    expect(ran.stderr).toContain(text);
  });
});

describe('signers calldata', () => {
  const [set] = [...signerSets.values()];
  if (set === undefined) throw new Error('The sample has a signer set.');
  const sets = toSignerSetsJson(signerSets);
  const calldata = (...args: string[]) => run(['signers', 'calldata', ...args], { env: {} });

  test('the only set of a file or a server is encoded for setConfig', async () => {
    for (const source of [file('one.json', JSON.stringify(sets)), service.url])
      expect(await calldata('--signers', source)).toEqual({
        code: 0,
        stdout: `${setConfigCalldata(set)}\n`,
        stderr: '',
      });
  });

  test('of several sets, one is named', async () => {
    const other = `0x${'12'.repeat(32)}`;
    const source = file('several.json', JSON.stringify({ ...sets, [other]: { f: 0, addresses: set.addresses } }));
    const { stdout } = await calldata(
      set.configDigest.toUpperCase().replace('0X', '0x'),
      '--signers',
      source,
      '--json',
    );
    expect(JSON.parse(stdout)).toEqual({
      function: 'setConfig(bytes32,address[],uint8,(address,uint64)[])',
      configDigest: set.configDigest,
      calldata: setConfigCalldata(set),
    });
    const failed = async (...args: string[]) => {
      const ran = await calldata(...args, '--signers', source);
      return [ran.code, ran.stderr];
    };
    expect(await failed()).toEqual([
      2,
      `error: Give the config digest of one signer set: ${set.configDigest}, ${other}.\n`,
    ]);
    expect(await failed('0x00')).toEqual([
      2,
      `error: 0x00 is not among the signer sets: ${set.configDigest}, ${other}.\n`,
    ]);
    expect(await failed(other)).toEqual([1, 'error: signerSet.f is 0, expected at least 1: the contract rejects 0.\n']);
  });
});
