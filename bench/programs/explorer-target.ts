// A server with a long catalog for the explorer to show, in a process of its own: a whole node with 2,000 streams, every one of which has
// a new report each second.
import { parseFeedId, type Stream } from '@sealpost/protocol';
import { testStream } from '../../tests/support/running-ingest.ts';
import { rekeyedReports } from '../rekeyed-reports.ts';
import { openBenchNode } from './bench-node.ts';

const count = 2_000;
const pastSeconds = 30;

const assetClasses = ['Crypto', 'Equities', 'Forex', 'Commodities', 'NAV'];
const attributeTypes = ['CexPrice', 'EquityPrice', 'ForexPrice', 'CommodityPrice', 'NAV'];

/** Streams that differ as those of a real catalog do: some in test, some at their end. */
const streamOf = (i: number): Stream => {
  const feedId = parseFeedId(`0x0003${(i * 7_919 + 1).toString(16).padStart(60, 'b')}`);
  const baseAsset = `${String.fromCharCode(65 + (i % 26))}${String(i).padStart(4, '0')}`;
  const attributeType = attributeTypes[i % attributeTypes.length] ?? '';
  return testStream(feedId, {
    name: `${baseAsset}/USD-Streams-${attributeType}`,
    assetName: `Asset ${i}`,
    baseAsset,
    assetClass: assetClasses[i % assetClasses.length] ?? '',
    attributeType,
    status: i % 40 === 3 ? 'testing' : 'live',
    expectedDecommissionAt: i % 40 === 7 ? '2030-06-28T00:00:00.000000Z' : null,
  });
};

const streams = Array.from({ length: count }, (_, i) => streamOf(i));
const { node, userId, secret, stop } = await openBenchNode(streams);
const from = Math.floor(Date.now() / 1_000) - pastSeconds;
const feedIds = streams.map(({ feedId }) => feedId);
const batches = rekeyedReports(from, 86_400, feedIds);
const appendNext = async (): Promise<void> => void (await node.write.store.reports.append(batches.next().value ?? []));
for (let second = 0; second < pastSeconds; second++) await appendNext();

let isStopping = false;
for (const end of ['SIGTERM', 'disconnect'] as const)
  process.once(end, () => {
    isStopping = true;
  });
process.send?.({ url: node.url, userId, secret });
for (let second = from + pastSeconds; !isStopping; second++) {
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, second * 1_000 - Date.now())));
  await appendNext();
}
await stop();
process.exit();
