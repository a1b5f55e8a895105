// The newest price of a stream. Run: npx tsx examples/latest.ts [feed ID]
// Server and account: SEALPOST_URL, SEALPOST_USER_ID, SEALPOST_SECRET, as `npm start` prints them.
import { createClient, decode } from '@sealpost/client';

const client = createClient({
  baseUrl: process.env.SEALPOST_URL ?? 'http://127.0.0.1:7401',
  userId: process.env.SEALPOST_USER_ID,
  secret: process.env.SEALPOST_SECRET,
});

const { feeds } = await client.discovery({ status: 'live', baseAsset: 'BTC' });
const feedId = process.argv[2] ?? feeds[0]?.feedId ?? '';
const { report, details } = await client.latest(feedId);
const { priceText, observationsTimestamp } = decode(report);
console.log(`${feedId} ${priceText} at ${new Date(observationsTimestamp * 1_000).toISOString()}`);
console.log(`request ${details.requestId}, ${details.rateLimit?.remaining ?? 'unlimited'} more at once`);
