// What is read from a store over HTTP and by commands: recorded when a release writes it, compared when a later one opens it.
import { createHash } from 'node:crypto';
import { signRequest } from '@sealpost/protocol';
import type { Operator } from './operator.ts';
import type { Reader, Written } from './write-store.ts';

export type Answer = { readonly status: number; readonly body: unknown };

/** The answer to a signed request, with a hash in place of each report's bytes. */
export type Read = (target: string, reader: Reader) => Promise<Answer>;

export const createRead =
  (url: string, ask: (request: Request, target: string) => Promise<Response> = (request) => fetch(request)): Read =>
  async (target, { userId, secret }) => {
    const headers = signRequest({ method: 'GET', target, userId, timestampMs: Date.now() }, secret);
    const response = await ask(new Request(`${url}${target}`, { headers }), target);
    return { status: response.status, body: JSON.parse(await response.text(), hashReport) };
  };

/** For JSON.parse. */
export const hashReport = (key: string, value: unknown): unknown =>
  key === 'fullReport' ? createHash('sha256').update(String(value)).digest('base64url') : value;

const targetsOf = (feedID: string, from: number, to: number): readonly string[] => [
  `/api/v1/reports/latest?feedID=${feedID}`,
  `/api/v1/reports/page?feedID=${feedID}&startTimestamp=${from}&limit=200`,
  `/api/v1/reports/coverage?feedID=${feedID}&from=${from}&to=${to}`,
  ...[60, 300, 3_600, 86_400].map(
    (seconds) => `/api/v1/reports/candles?feedID=${feedID}&from=${from}&to=${to}&resolution=${seconds}`,
  ),
];

/** By the name of the reader and the target. Refusals have their status alone, since their texts may change. */
export type Answers = Readonly<Record<string, Answer>>;

export const readAnswers = async (
  read: Read,
  { feedIds, from, to, readers }: Omit<Written, 'later'>,
): Promise<Answers> => {
  const answers: Record<string, Answer> = {};
  const ask = async (name: keyof Written['readers'], target: string): Promise<void> => {
    const { status, body } = await read(target, readers[name]);
    answers[`${name} ${target}`] = { status, body: status < 400 ? body : null };
  };
  const list = feedIds.join(',');
  await ask('all', '/signers.json');
  await ask('all', '/api/v1/discovery?hidden=true');
  await ask('all', `/api/v1/reports/bulk?feedIDs=${list}&timestamp=${from + 1}`);
  await ask('all', `/api/v1/reports/latest?feedIDs=${list}`);
  for (const feedId of feedIds) for (const target of targetsOf(feedId, from, to)) await ask('all', target);
  for (const name of Object.keys(readers) as (keyof typeof readers)[]) await ask(name, '/api/v1/feeds');
  // Few of them: an address that is refused more than ten times a second gets 429.
  for (const feedId of feedIds.slice(0, 6)) await ask('few', `/api/v1/reports?feedID=${feedId}&timestamp=${to}`);
  return answers;
};

/** What the commands say of a store that no server has open. */
export const readRecords = async ({ runJson }: Operator): Promise<Readonly<Record<string, unknown>>> => {
  const records: Record<string, unknown> = {
    streams: await runJson('stream', 'list'),
    signers: await runJson('signers', 'list'),
    accounts: await runJson('account', 'list'),
    quarantine: await runJson('quarantine', 'list'),
    audit: await runJson('audit', 'list', '--limit', '1000'),
    auditVerified: await runJson('audit', 'verify'),
  };
  const { streams, reports, reportBytes, quarantined } = (await runJson('store', 'stats')) as Record<string, number>;
  records.stats = { streams, reports, reportBytes, quarantined };
  records.secrets = await runJson('account', 'show', 'rotated');
  for (const name of ['all', 'few'])
    records[`usage ${name}`] = await runJson('account', 'usage', name, '--days', '366');
  return records;
};
