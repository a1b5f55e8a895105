import { createCatalog } from '@sealpost/simulator';
import { expect, test } from 'vitest';
import { parseSimulateOptions, type SimulateOptions } from './arguments.ts';

const now = 1_762_180_200; // 2025-11-03T14:30:00Z
const raw: SimulateOptions = { seed: 'demo', network: 'testnet', from: '-10m', out: 'somewhere' };
const btcName = 'BTC/USD-Streams-CexPrice';
const btc = createCatalog('testnet').find(({ name }) => name === btcName)?.feedId;

test('simulate: a range is read with its faults, streams by name in any case or by feed ID', () => {
  const settings = parseSimulateOptions(
    { ...raw, streams: `btc/usd-streams-cexprice`, gap: [`${btc},-5m,-4m`], late: [`${btcName},-3m,-2m,7`] },
    now,
  );
  expect(settings).toEqual({
    mode: 'span',
    simulation: {
      seed: 'demo',
      networkType: 'testnet',
      n: 4,
      f: 1,
      feedIds: [btc],
      gaps: [{ feedId: btc, from: now - 300, to: now - 240 }],
      late: [{ feedId: btc, from: now - 180, to: now - 120, delaySeconds: 7 }],
    },
    span: { from: now - 600, to: now },
    out: 'somewhere',
    workers: undefined,
    json: false,
  });
});

test('simulate: f follows the number of oracles unless it is given', () => {
  const sizeOf = (more: Partial<SimulateOptions>) => {
    const { n, f } = parseSimulateOptions({ ...raw, network: 'mainnet', ...more }, now).simulation;
    return [n, f];
  };
  expect(sizeOf({})).toEqual([16, 5]);
  expect(sizeOf({ oracles: '7' })).toEqual([7, 2]);
  expect(sizeOf({ oracles: '31', faulty: '10' })).toEqual([31, 10]);
});

test.each<[Partial<SimulateOptions>, string]>([
  [{ network: 'devnet' }, '--network has the value "devnet", expected mainnet or testnet.'],
  [{ oracles: '32' }, '--oracles has the value "32", expected a whole number from 1 to 31.'],
  [{ faulty: '2' }, '--faulty has the value "2", expected a whole number from 0 to 1.'],
  [{ workers: 'many' }, '--workers has the value "many", expected a whole number from 0 to 64.'],
  [{ from: '-1m', to: '-2m' }, '--to (1762180080) is before --from (1762180140).'],
  [{ to: '4294967295' }, '--to has the value "4294967295", expected a time up to '],
  [{ gap: ['x'] }, '--gap has the value "x", expected FEED,FROM,TO.'],
  [{ gap: [`${btcName},-1m,-2m`] }, '--gap has the value "-1m,-2m", expected a TO that is not before FROM.'],
  [{ late: [`${btcName},-2m,-1m`] }, `--late has the value "${btcName},-2m,-1m", expected FEED,FROM,TO,DELAY.`],
  [{ late: [`${btcName},-2m,-1m,0`] }, '--late has the value "0", expected a whole number from 1 to 2592000.'],
  [
    { streams: 'PLATINUM' },
    '--streams: No stream is named "PLATINUM". Such as AAPL/USD-Streams-EquityPrice, AAPL/USD-Streams-TokenizedPrice, AERO/USD-Streams-DexPrice.',
  ],
  [{ live: true }, '--from cannot be combined with --live.'],
])('simulate: %o is rejected by name', (wrong, message) => {
  expect(() => parseSimulateOptions({ ...raw, ...wrong }, now)).toThrow(message);
});

test('simulate: a pair names its stream; one of several needs its full name', () => {
  expect(parseSimulateOptions({ ...raw, streams: 'link/usd' }, now).simulation.feedIds).toHaveLength(1);
  expect(() => parseSimulateOptions({ ...raw, streams: 'ETH/USD' }, now)).toThrow(
    /^--streams: "ETH\/USD" matches \d streams\. Give a full name or a feed ID:\n {2}ETH\/USD-Streams-/,
  );
});

test('simulate: a range needs its start and its directory', () => {
  const { from: _, ...noFrom } = raw;
  const { out: __, ...noOut } = raw;
  expect(() => parseSimulateOptions(noFrom, now)).toThrow(/^--from is missing, expected Unix seconds/);
  expect(() => parseSimulateOptions(noOut, now)).toThrow(
    '--out is missing, expected the directory to write to (or --live).',
  );
});
