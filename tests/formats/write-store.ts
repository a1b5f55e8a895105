// Fills a store as operators do, by the commands of one release: streams of every schema, a signer rotation, late reports, rejected ones, accounts.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ingestLines, type Operator } from './operator.ts';

export type Reader = { readonly userId: string; readonly secret: string };

export type Written = {
  /** Unix seconds of the first and the last report. */
  readonly from: number;
  readonly to: number;
  readonly feedIds: readonly string[];
  /** By what is special about them. `former` is a secret that was revoked. */
  readonly readers: Readonly<Record<'all' | 'few' | 'disabled' | 'second' | 'former', Reader>>;
  /** Reports of the time after, none of which was stored. */
  readonly later: readonly string[];
};

/** Streams with enough reports for a block, all others have a few. One of them has a gap, and late reports. */
const long = ['BTC/USD-Streams-CexPrice', 'LINK/USD-Streams-CexPrice'];
const [firstSeconds, secondSeconds, laterSeconds] = [115, 12, 3];
const ended = 'LTC/USD-Streams-CexPrice';

type Simulated = { readonly folder: string; readonly lines: readonly string[] };

const simulate = async ({ folder, run }: Operator, seed: string, from: number, seconds: number, few: number) => {
  const out = join(folder, `${seed}-${from}`);
  const span = (count: number) => ['--from', `${from}`, '--to', `${from + count - 1}`, '--seed', seed];
  await run(['simulate', ...span(few), '--out', out]);
  await run(['simulate', ...span(seconds), '--out', `${out}-long`, '--streams', long.join(',')]);
  const lines = [out, `${out}-long`].flatMap((one) => readFileSync(join(one, 'reports.ndjson'), 'utf8').split('\n'));
  const unique = [...new Set(lines)].filter((line) => line !== '');
  return { folder: out, lines: unique.sort((a, b) => secondOf(a) - secondOf(b)) } satisfies Simulated;
};

type Line = { readonly feedID: string; readonly observationsTimestamp: number; readonly fullReport: string };
const parseLine = (line: string): Line => JSON.parse(line) as Line; // written by the simulator
const secondOf = (line: string): number => parseLine(line).observationsTimestamp;

const namesOf = (folder: string): ReadonlyMap<string, string> => {
  const { feeds } = JSON.parse(readFileSync(join(folder, 'catalog.json'), 'utf8')) as {
    feeds: { feedId: string; name: string }[];
  };
  return new Map(feeds.map(({ feedId, name }) => [feedId, name]));
};

/** A report with one changed digit of its price. */
const alter = (line: string): string => {
  const { fullReport, ...rest } = parseLine(line);
  const at = 1_000;
  const digit = fullReport[at] === '1' ? '2' : '1';
  return JSON.stringify({ ...rest, fullReport: `${fullReport.slice(0, at)}${digit}${fullReport.slice(at + 1)}` });
};

const createReaders = async ({ runJson, run }: Operator): Promise<Written['readers']> => {
  const create = async (name: string, ...args: string[]) =>
    (await runJson('account', 'create', '--name', name, ...args)) as Reader & { secretId: string };
  const all = await create('all', '--entitle', 'public', '--limit', '*=0');
  const few = await create('few', '--entitle', `feed:${long[0]}`, '--entitle', 'filter:asset_class=Forex');
  await run(['account', 'limit', 'few', '--limit', 'reportPage=50', '--limit', 'feeds=5']);
  const disabled = await create('disabled', '--entitle', 'public');
  await run(['account', 'disable', 'disabled']);
  const former = await create('rotated', '--entitle', 'public');
  const second = (await runJson('secret', 'add', 'rotated')) as { secret: string };
  await run(['secret', 'revoke', 'rotated', former.secretId]);
  const only = ({ userId, secret }: Reader): Reader => ({ userId, secret });
  return {
    all: only(all),
    few: only(few),
    disabled: only(disabled),
    former: only(former),
    second: { userId: former.userId, secret: second.secret },
  };
};

/** Reports end a minute before `nowSeconds`. */
export const writeStore = async (operator: Operator, nowSeconds: number): Promise<Written> => {
  const { run } = operator;
  const from = nowSeconds - 60 - firstSeconds - secondSeconds - laterSeconds;
  const change = from + firstSeconds;
  const first = await simulate(operator, 'first', from, firstSeconds, 2);
  const second = await simulate(operator, 'second', change, secondSeconds, 2);
  const later = await simulate(operator, 'second', change + secondSeconds, laterSeconds, laterSeconds);
  const names = namesOf(first.folder);
  const isOf = (name: string | undefined) => (line: string) => names.get(parseLine(line).feedID) === name;
  const isBetween = (line: string, start: number, end: number) =>
    secondOf(line) >= from + start && secondOf(line) < from + end;
  const isLate = (line: string) => isOf(long[1])(line) && isBetween(line, 20, 25);
  const isMissing = (line: string) => isOf(long[1])(line) && isBetween(line, 50, 60);

  await run(['init']);
  await run(['stream', 'import', join(first.folder, 'catalog.json')]);
  await run(['signers', 'import', join(first.folder, 'signers.json')]);
  const readers = await createReaders(operator);
  await ingestLines(
    operator,
    first.lines.filter((line) => !isLate(line) && !isMissing(line)),
  );
  await ingestLines(operator, first.lines.filter(isLate));
  await run(['signers', 'import', join(second.folder, 'signers.json')]);
  const [[digest = '']] = [Object.keys(JSON.parse(readFileSync(join(first.folder, 'signers.json'), 'utf8')))];
  await run(['signers', 'retire', digest]);
  await ingestLines(operator, second.lines);
  // Altered, signed by those who retired, and no report at all.
  await ingestLines(operator, [alter(second.lines[0] ?? ''), first.lines.filter(isMissing)[0] ?? '', '{}'], 1);
  await run(['stream', 'decommission', ended]);
  await run(['stream', 'set', 'DOGE/USD-Streams-CexPrice', '--hidden', 'true']);
  const isAccepted = (line: string) => !isOf(ended)(line);
  return {
    from,
    to: change + secondSeconds - 1,
    feedIds: [...names.keys()],
    readers,
    later: later.lines.filter(isAccepted),
  };
};
