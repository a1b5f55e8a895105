import { decodeFullReport, decodeReportBody, type FeedId, type ReportBody, verifyReport } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { createSimulation, type DeliveredReport, type Simulation } from './simulation.ts';

// A minute before the opening bell of a Monday.
const start = Date.parse('2025-11-03T14:29:00Z') / 1_000;

const deliver = (simulation: Simulation, from: number, seconds: number): readonly DeliveredReport[] =>
  Array.from({ length: seconds }, (_, i) => [...simulation.deliverAt(from + i)]).flat();

const bodyOf = ({ report }: DeliveredReport): ReportBody => decodeReportBody(decodeFullReport(report.fullReport).body);

test('every report of a minute decodes, verifies, and agrees with the fields around it', async () => {
  const simulation = await createSimulation({ seed: 'demo' });
  const { signerSet, engine } = simulation.network;
  const signerSets = new Map([[signerSet.configDigest, signerSet]]);
  const seen = { versions: new Set<number>(), feedIds: new Set<string>() };
  for (const delivered of deliver(simulation, start, 60)) {
    const { report } = delivered;
    const verification = verifyReport(decodeFullReport(report.fullReport), signerSets, engine);
    if (!verification.ok) expect.fail(`${report.feedID} ${verification.reason}`);
    const body = bodyOf(delivered);
    seen.versions.add(body.version);
    seen.feedIds.add(report.feedID);
    expect(body).toMatchObject({
      feedId: report.feedID,
      validFromTimestamp: report.validFromTimestamp,
      observationsTimestamp: report.observationsTimestamp,
      expiresAt: report.observationsTimestamp + 2_592_000,
    });
  }
  expect([...seen.versions].sort((a, b) => a - b)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
  expect(seen.feedIds.size).toBe(26); // all but the decommissioned one
});

test('the windows of each stream are contiguous, and the rounds of reports increase with time', async () => {
  const { streams } = await createSimulation({ seed: 'demo' });
  const slowOrEther = streams.filter(({ intervalSeconds, stream }) => intervalSeconds > 1 || /^ETH/.test(stream.name));
  const feedIds = slowOrEther.map(({ stream }) => stream.feedId);
  const simulation = await createSimulation({ seed: 'demo', feedIds });
  const last = new Map<string, { observed: number; round: string }>();
  for (const { report } of deliver(simulation, start, 300)) {
    const previous = last.get(report.feedID);
    const round = decodeFullReport(report.fullReport).context.epochAndRound;
    if (previous !== undefined) {
      expect(report.validFromTimestamp).toBe(previous.observed + 1);
      expect(round > previous.round).toBe(true);
    }
    last.set(report.feedID, { observed: report.observationsTimestamp, round });
  }
  expect(last.size).toBe(feedIds.length);
});

test('no window covers a gap', async () => {
  const { streams } = await createSimulation({ seed: 'demo' });
  const twap = streams.find(({ stream }) => stream.name === 'ETH/USD-Streams-TWAP');
  const feedId = twap?.stream.feedId as FeedId; // in the table
  const gaps = [{ feedId, from: start + 20, to: start + 49 }];
  const simulation = await createSimulation({ seed: 'demo', feedIds: [feedId], gaps });
  const windows = deliver(simulation, start, 120).map(({ report }) => report);
  expect(windows.length).toBe(9);
  const hole = windows.findIndex(
    (window, i) => i > 0 && window.validFromTimestamp !== (windows[i - 1]?.observationsTimestamp ?? 0) + 1,
  );
  expect((windows[hole]?.validFromTimestamp ?? 0) - (windows[hole - 1]?.observationsTimestamp ?? 0)).toBe(31);
  expect(windows.every((window) => window.observationsTimestamp - window.validFromTimestamp === 9)).toBe(true);
});

test('the report of a closed market has the status, time and price of its last open second', async () => {
  const { streams } = await createSimulation({ seed: 'demo' });
  const apple = streams.find(({ stream }) => stream.name === 'AAPL/USD-Streams-EquityPrice');
  const simulation = await createSimulation({ seed: 'demo', feedIds: [apple?.stream.feedId as FeedId] }); // in the table
  const bodyAt = (date: string) => deliver(simulation, Date.parse(date) / 1_000, 1).map(bodyOf)[0];
  const friday = bodyAt('2025-10-31T23:59:59Z');
  const sunday = bodyAt('2025-11-02T12:00:00Z');
  if (friday?.version !== 11 || sunday?.version !== 11) expect.fail('no version 11 report');
  expect([friday.marketStatus, sunday.marketStatus]).toEqual([3, 5]);
  expect(sunday.lastSeenTimestampNs).toBe(1_761_955_199_000_000_000n);
  expect([sunday.mid, sunday.bid, sunday.ask]).toEqual([friday.mid, friday.bid, friday.ask]);
});

test('the fee is 35 cents in either token', async () => {
  const { streams } = await createSimulation({ seed: 'demo' });
  const feedIds = streams
    .filter(({ stream }) => /^(ETH|LINK).*Cex/.test(stream.name))
    .map(({ stream }) => stream.feedId);
  const simulation = await createSimulation({ seed: 'demo', feedIds });
  const [eth, link] = deliver(simulation, start, 1).map(bodyOf);
  if (eth?.version !== 3 || link?.version !== 3) expect.fail('no version 3 reports');
  const cents = (fee: bigint, price: bigint) => Math.round(Number((fee * price) / 10n ** 26n) / 1e8);
  expect([cents(eth.nativeFee, eth.price), cents(eth.linkFee, link.price)]).toEqual([35, 35]);
});

test('a stream that is not simulated is rejected', async () => {
  const feedIds = [`0x0003${'00'.repeat(30)}` as FeedId]; // 32 bytes
  await expect(createSimulation({ seed: 'demo', feedIds })).rejects.toThrow(/is not simulated on this network/);
});
