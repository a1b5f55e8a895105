// What a user does with @sealpost/client, as a program for any JavaScript runtime: reads, pages, streams over each transport, slow reading,
// verification, and errors. It prints what it saw as one line of JSON, and must then end by itself.
import { createClient, decode, type ReportStream, SealpostError, verify } from '@sealpost/client';

/** What the program prints. */
export type ClientFacts = {
  readonly latest: string;
  readonly decodedPrice: string;
  readonly verified: readonly boolean[];
  readonly altered: boolean;
  readonly at: boolean;
  readonly pageSizes: readonly number[];
  /** Seconds between one report and the next. */
  readonly websocket: readonly number[];
  readonly sse: readonly number[];
  readonly slow: readonly number[];
  readonly refusals: readonly string[];
};

const { SEALPOST_URL: baseUrl = '', SEALPOST_USER_ID: userId = '', SEALPOST_SECRET: secret = '' } = process.env;
const [feedId = ''] = process.argv.slice(2);
const client = createClient({ baseUrl, userId, secret });
const deadline = setTimeout(() => {
  process.stderr.write('client program: not done after 280 s\n');
  process.exit(1);
}, 280_000);

const stepsOf = (reports: readonly { readonly observationsTimestamp: number }[]): readonly number[] =>
  reports
    .slice(1)
    .map(({ observationsTimestamp }, i) => observationsTimestamp - (reports[i]?.observationsTimestamp ?? 0));

const take = async (stream: ReportStream, count: number, pauseMs = 0) => {
  const reports = [];
  for await (const report of stream) {
    reports.push(report);
    if (reports.length === count) break;
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return reports;
};

const codeOf = async (failing: Promise<unknown>): Promise<string> => {
  try {
    await failing;
    return 'none';
  } catch (error) {
    return error instanceof SealpostError ? `${error.code} ${error.status}` : `unknown: ${error}`;
  }
};

const { report } = await client.latest(feedId);
const { signers } = await client.signers();
const from = report.observationsTimestamp - 20;
const pages = [];
for await (const page of client.pages(feedId, { from, to: from + 9, limit: 4 })) pages.push(page.reports);
const stranger = createClient({ baseUrl, userId, secret: 'another' });
const websocket = await take(client.stream([feedId], { transport: 'websocket' }), 3);
const sse = await take(client.stream([feedId], { transport: 'sse', from }), 23);
// The queue of two is full most of the time, so the connection is paused and resumed again and again.
const slow = await take(client.stream([feedId], { transport: 'websocket', from, queueMax: 2 }), 20, 20);
const facts: ClientFacts = {
  latest: report.feedID,
  decodedPrice: String(decode(report).price),
  verified: [report, ...pages.flat(), ...websocket, ...sse, ...slow].map((one) => verify(one, signers).ok),
  altered: verify({ ...report, observationsTimestamp: report.observationsTimestamp + 1 }, signers).ok,
  at: (await client.at(feedId, from)).report.observationsTimestamp === from,
  pageSizes: pages.map(({ length }) => length),
  websocket: stepsOf(websocket),
  sse: stepsOf(sse),
  slow: stepsOf(slow),
  refusals: [
    await codeOf(stranger.latest(feedId)),
    await codeOf(take(stranger.stream([feedId], { transport: 'websocket' }), 1)),
    await codeOf(take(stranger.stream([feedId], { transport: 'sse' }), 1)),
  ],
};
process.stdout.write(`${JSON.stringify(facts)}\n`);
clearTimeout(deadline);
