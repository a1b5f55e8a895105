// The price at an exact second, with its proof: who signed it, and what a verifier contract takes.
// Run: npx tsx examples/settlement.ts [feed ID] [Unix second] [fee token's address]
// Server and account: SEALPOST_URL, SEALPOST_USER_ID, SEALPOST_SECRET, as `npm start` prints them. The signers that you trust are in
// signers.json, or the file that SEALPOST_SIGNERS names: for the demo, npx sealpost signers list --json > signers.json
import { readFileSync } from 'node:fs';
import { createClient, SealpostError, verify, withFeeToken } from '@sealpost/client';

const client = createClient({
  baseUrl: process.env.SEALPOST_URL ?? 'http://127.0.0.1:7401',
  userId: process.env.SEALPOST_USER_ID,
  secret: process.env.SEALPOST_SECRET,
});

const signers = JSON.parse(readFileSync(process.env.SEALPOST_SIGNERS ?? 'signers.json', 'utf8'));
const { feeds } = await client.discovery({ status: 'live', baseAsset: 'BTC' });
const feedId = process.argv[2] ?? feeds[0]?.feedId ?? '';
const second = Number(process.argv[3] ?? Math.floor(Date.now() / 1_000) - 10);

const { report } = await client.at(feedId, second).catch((error: unknown) => {
  // Never the nearest report instead: if none is valid, the error names the reports before and after the second.
  if (!(error instanceof SealpostError) || error.code !== 'report_not_found') throw error;
  console.error(`No price at ${second}: ${error.message}`, error.details);
  process.exit(1);
});
const verdict = verify(report, signers);
if (!verdict.ok) throw new Error(`Not to be settled with: ${verdict.message}`);
const [payload, parameter] = withFeeToken(report, process.argv[4]);
const proof = {
  feedId,
  second,
  price: verdict.decoded?.priceText,
  holds: [report.validFromTimestamp, report.observationsTimestamp],
  configDigest: verdict.configDigest,
  signers: verdict.signers,
  contractCall: { function: 'verify(bytes,bytes)', payload, parameter },
};
console.log(JSON.stringify(proof, null, 2));
