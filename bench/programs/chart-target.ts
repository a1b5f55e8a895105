// A server for the explorer's chart, in a process of its own: one stream with a day of one-second reports, and a new one each second.
import { parseFeedId } from '@sealpost/protocol';
import { testStream } from '../../tests/support/running-ingest.ts';
import { rekeyedReports } from '../rekeyed-reports.ts';
import { openBenchNode } from './bench-node.ts';

const daySeconds = 86_400;
const batchSeconds = 600;

const feedId = parseFeedId(`0x0003${'c'.repeat(60)}`);
const { node, userId, secret, stop } = await openBenchNode([testStream(feedId)]);
const from = Math.floor(Date.now() / 1_000) - daySeconds;
const seconds = rekeyedReports(from, 2 * daySeconds, [feedId]);
const next = (count: number) => Array.from({ length: count }, () => [...(seconds.next().value ?? [])]).flat();
const { reports } = node.write.store;
for (let second = 0; second < daySeconds; second += batchSeconds) await reports.append(next(batchSeconds));

let isStopping = false;
for (const end of ['SIGTERM', 'disconnect'] as const)
  process.once(end, () => {
    isStopping = true;
  });
process.send?.({ url: node.url, userId, secret, feedId });
for (let second = from + daySeconds; !isStopping; second++) {
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, second * 1_000 - Date.now())));
  await reports.append(next(1));
}
await stop();
process.exit();
