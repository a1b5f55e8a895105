// Live prices in a terminal: price, bid and ask, age. Run: npx tsx examples/live-ticker.ts [feed ID…]; Ctrl-C ends it.
// When piped, it prints one line per report instead: time, stream, price, bid, ask.
// Server and account: SEALPOST_URL, SEALPOST_USER_ID, SEALPOST_SECRET, as `npm start` prints them.
import { createClient, type DecodedReport, decode, formatDecimal } from '@sealpost/client';

const client = createClient({
  baseUrl: process.env.SEALPOST_URL ?? 'http://127.0.0.1:7401',
  userId: process.env.SEALPOST_USER_ID,
  secret: process.env.SEALPOST_SECRET,
});

const { feeds } = await client.discovery({ status: 'live' });
const nameOf = new Map<string, string>(feeds.map(({ feedId, name }) => [feedId, name]));
const crypto = feeds.filter(({ baseAsset, quoteAsset }) => /^(BTC|ETH)$/.test(baseAsset) && quoteAsset === 'USD');
const asked = process.argv.slice(2).map((feedId) => feedId.toLowerCase());
const feedIds = asked.length > 0 ? asked : crypto.map(({ feedId }) => feedId);

const stop = new AbortController();
process.once('SIGINT', () => stop.abort());
process.once('SIGTERM', () => stop.abort());
process.stdout.on('error', () => stop.abort()); // whoever read the pipe has gone

let phase = 'connecting';
const newest = new Map<string, DecodedReport>();
const side = (value: bigint | undefined): string => (value === undefined ? '–' : formatDecimal(value));

/** A line of the table: name in 24 characters, three prices in 13 each, the age. Further decimals are cut. */
const lineOf = (name: string, prices: readonly string[], age: string): string =>
  [name.slice(0, 24).padEnd(24), ...prices.map((price) => price.slice(0, 13).padStart(13)), age.padStart(7)].join('  ');

const row = (feedId: string): string => {
  const report = newest.get(feedId);
  const name = nameOf.get(feedId) ?? feedId;
  if (report === undefined) return lineOf(name, ['–', '–', '–'], '–');
  const ageSeconds = Math.max(0, Date.now() - report.observationsMs) / 1_000;
  return lineOf(name, [report.priceText, side(report.bid), side(report.ask)], `${ageSeconds.toFixed(1)} s`);
};

/** Draws the table over the previous one: moves up by its lines and clears each to its end. */
const draw = (isFirst: boolean): void => {
  const lines = [lineOf('stream', ['price', 'bid', 'ask'], 'age'), ...feedIds.map(row), `${phase}; Ctrl-C ends it`];
  const fitting = lines.map((line) => `${line.slice(0, process.stdout.columns)}\x1b[K\n`); // a line that wraps would be two
  process.stdout.write(`${isFirst ? '' : `\x1b[${lines.length}A`}${fitting.join('')}`);
};

const isTerminal = process.stdout.isTTY === true;
if (isTerminal) draw(true);
const clock = isTerminal ? setInterval(() => draw(false), 200) : undefined; // ages grow between reports

const onState = (state: { readonly phase: string }): void => {
  phase = state.phase;
};
for await (const report of client.stream(feedIds, { signal: stop.signal, onState })) {
  const decoded = decode(report);
  newest.set(decoded.feedId, decoded);
  const { priceText, bid, ask, observationsMs } = decoded;
  const cells = [nameOf.get(decoded.feedId) ?? decoded.feedId, priceText, side(bid), side(ask)];
  if (!isTerminal) console.log([new Date(observationsMs).toISOString(), ...cells].join(' '));
}
clearInterval(clock);
