// The last minutes of a stream as CSV. Run: npx tsx examples/history-to-csv.ts [feed ID] [minutes] > history.csv
// Server and account: SEALPOST_URL, SEALPOST_USER_ID, SEALPOST_SECRET, as `npm start` prints them.
import { createClient, decode, formatDecimal } from '@sealpost/client';

const client = createClient({
  baseUrl: process.env.SEALPOST_URL ?? 'http://127.0.0.1:7401',
  userId: process.env.SEALPOST_USER_ID,
  secret: process.env.SEALPOST_SECRET,
  retryRateLimited: true, // a long history takes more requests than the limit allows at once
});

const { feeds } = await client.discovery({ status: 'live', baseAsset: 'BTC' });
const feedId = process.argv[2] ?? feeds[0]?.feedId ?? '';
const minutes = Number(process.argv[3] ?? 1);
const to = Math.floor(Date.now() / 1_000);

console.log('validFrom,observed,price,bid,ask');
for await (const { reports } of client.pages(feedId, { from: to - minutes * 60, to })) {
  for (const { validFromTimestamp, observationsTimestamp, priceText, bid, ask } of reports.map(decode)) {
    const sides = [bid, ask].map((side) => (side === undefined ? '' : formatDecimal(side)));
    console.log([validFromTimestamp, observationsTimestamp, priceText, ...sides].join(','));
  }
}
