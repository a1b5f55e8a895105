// The operation that returns the reports of several streams at a timestamp: complete, partial, and too many.
import { randomBytes } from 'node:crypto';
import type { Check } from '../check.ts';
import type { CheckContext } from '../check-context.ts';
import { targets } from '../sample.ts';
import { demand, demandStatus, excerpt, SkipError } from '../verdict.ts';
import { argumentChecks, requireReports, unknownFeedId } from './reads.ts';

/** The sampled streams, divided by whether they have a report at a second when the first one has. */
const streamsAt = async ({ ask, sample }: CheckContext) => {
  const streams = await sample.streams();
  const [{ newest }] = await sample.reporting();
  const timestamp = newest.observationsTimestamp;
  const present: string[] = [];
  const absent: string[] = [];
  for (const { feedId } of streams) {
    const { status } = await ask(targets.at(feedId, timestamp));
    if (status === 200) present.push(feedId);
    if (status === 404) absent.push(feedId);
  }
  return { timestamp, present, absent };
};

/** Asks for several streams; for two of them if the deployment answers no more at once. */
const askFor = async ({ ask }: CheckContext, ids: readonly string[], timestamp: number) => {
  const answer = await ask(targets.bulk(ids, timestamp));
  if (answer.status !== 400 || ids.length <= 2) return { answer, asked: ids };
  const asked = ids.slice(0, 2);
  return { answer: await ask(targets.bulk(asked, timestamp)), asked };
};

const complete: Check['run'] = async (context) => {
  const { timestamp, present } = await streamsAt(context);
  const { answer, asked } = await askFor(context, present, timestamp);
  demandStatus(answer, [200], `200, because all ${asked.length} streams have a report at ${timestamp}`);
  const found = requireReports(answer);
  const missing = asked.find((id) => !found.some(({ feedID }) => feedID === id));
  demand(missing === undefined, 'a report of every requested stream', () => `none of ${missing}`, answer);
  demand(found.length === asked.length, `${asked.length} reports`, () => `${found.length} reports`, answer);
  const wrong = found.find((one) => timestamp < one.validFromTimestamp || one.observationsTimestamp < timestamp);
  demand(
    wrong === undefined,
    `reports that are valid at ${timestamp}`,
    () => `${wrong?.validFromTimestamp} to ${wrong?.observationsTimestamp}`,
    answer,
  );
};

const partial: Check['run'] = async (context) => {
  const { timestamp, present, absent } = await streamsAt(context);
  const [missing] = absent;
  if (missing === undefined) throw new SkipError(`Every sampled stream has a report at ${timestamp}.`);
  const { answer, asked } = await askFor(context, [missing, ...present], timestamp);
  if (answer.status === 200 && (await context.ask(targets.at(missing, timestamp))).status === 200)
    throw new SkipError(`${missing} had no report at ${timestamp} at first, but has one now.`);
  demandStatus(answer, [206], `206, because ${missing} has no report at ${timestamp}`);
  const found = requireReports(answer).map(({ feedID }) => feedID);
  demand(!found.includes(missing), `no report of ${missing}`, () => 'one', answer);
  const others = asked.slice(1);
  demand(
    others.every((id) => found.includes(id)),
    'the reports of the other streams',
    () => `${found.length} of ${others.length}`,
    answer,
  );
};

const empty: Check['run'] = async (context) => {
  const streams = await context.sample.reporting();
  const future = Math.max(...streams.map(({ newest }) => newest.observationsTimestamp)) + 86_400;
  const ids = streams.map(({ feedId }) => feedId);
  const { answer } = await askFor(context, ids, future);
  demandStatus(answer, [206]);
  demand(requireReports(answer).length === 0, 'an empty list', () => excerpt(answer.text), answer);
};

const forbidden: Check['run'] = async ({ ask, sample }) => {
  const [{ feedId, newest }] = await sample.reporting();
  demandStatus(await ask(targets.bulk([feedId, unknownFeedId], newest.observationsTimestamp)), [401]);
};

/** More streams than any deployment may be asked for; none of them exists, so that 401 is right too. */
const tooMany: Check['run'] = async ({ ask, sample }) => {
  const [{ newest }] = await sample.reporting();
  const ids = Array.from({ length: 150 }, () => `0x0003${randomBytes(30).toString('hex')}`);
  demandStatus(await ask(targets.bulk(ids, newest.observationsTimestamp)), [400, 401, 413, 414, 431], '400 or 401');
};

const missingData =
  'When data for some requested stream is missing at the timestamp (for example not yet available), the array holds only the reports that exist, and the status code is 206.';

export const bulkChecks: readonly Check[] = [
  {
    id: 'bulk.complete',
    title: 'Streams that all have a report: 200 with one report each',
    source: 'specification',
    sentence: 'Response body: object with one key reports, an array of Report objects.',
    run: complete,
  },
  {
    id: 'bulk.partial',
    title: 'A stream without a report is left out, and the status is 206',
    source: 'specification',
    sentence: missingData,
    run: partial,
  },
  {
    id: 'bulk.empty',
    title: 'No stream with a report: 206 with an empty list',
    source: 'specification',
    sentence: missingData,
    run: empty,
  },
  {
    id: 'bulk.one-unknown',
    title: 'One stream that does not exist fails the whole request with 401',
    source: 'specification',
    sentence: 'A request for a stream the caller has no permission for, or that does not exist, fails with 401.',
    run: forbidden,
  },
  {
    id: 'bulk.too-many',
    title: '150 streams that do not exist are rejected, not answered',
    source: 'specification',
    sentence: '401 Unauthorized: the caller requests a stream without permission or that does not exist.',
    run: tooMany,
  },
  ...argumentChecks('bulk', (feedId, timestamp) => targets.bulk([feedId], timestamp), [
    ['no-feeds', 'Missing feedIDs are 400', (_, timestamp) => `/api/v1/reports/bulk?timestamp=${timestamp}`],
    ['no-timestamp', 'A missing timestamp is 400', (feedId) => `/api/v1/reports/bulk?feedIDs=${feedId}`],
    [
      'malformed-feed',
      'A malformed feed ID in the list is 400',
      (feedId, timestamp) => targets.bulk([feedId, '0x12'], timestamp),
    ],
    ['malformed-timestamp', 'A timestamp that is not a number is 400', (feedId) => targets.bulk([feedId], 'now')],
  ]),
];
