// The command `sealpost coverage`: how complete a stream is in a time range, and its gaps.
import type { FeedId } from '@sealpost/protocol';
import { type Coverage, coverageOf, windowsTouching } from '@sealpost/server/store/coverage';
import type { Store } from '@sealpost/server/store/store';
import type { SettingsCommand } from '../command.ts';
import { CommandError, exitCodes } from '../failure.ts';
import { type Column, formatCount, formatNumberOf, formatSecond, renderPairs, renderTable } from '../formats.ts';
import type { Session } from '../session.ts';
import { feedForms, findReadableStream } from '../stream-argument.ts';
import { parseSpan, timeForms } from '../time-arguments.ts';

export const coverageCommand: SettingsCommand = {
  name: 'coverage',
  summary: 'Measure how complete a stream is: the seconds covered by reports, and the gaps.',
  arguments: [{ name: '<FEED>', help: feedForms }],
  options: [
    { flag: '--from <time>', help: 'first second (default: the oldest report)' },
    { flag: '--to <time>', help: 'last second, included (default: the newest report)' },
    { flag: '--json', help: 'print one line of JSON' },
  ],
  settings: ['store'],
  about: `Times are ${timeForms}.`,
  examples: [
    ['All stored reports', 'sealpost coverage BTC/USD-Streams-CexPrice'],
    ['Last day', 'sealpost coverage BTC/USD-Streams-CexPrice --from -1d --to now'],
  ],
  run: async ({ session, options, withStore, print }, feed: string) => {
    const measured = await withStore(async (store) => {
      const { feedId, name } = await findReadableStream(store, feed);
      const given = options.from !== undefined && options.to !== undefined;
      const whole = given ? { from: 0, to: 0 } : await storedSpan(store, feedId, name);
      const span = parseSpan(options, whole, Math.floor(session.nowMs() / 1_000));
      return { feedId, name, ...(await coverageOf(windowsTouching(store.reports, feedId, span), span)) };
    });
    await print(measured, renderCoverage(session, measured));
  },
};

const storedSpan = async ({ reports }: Store, feedId: FeedId, name: string) => {
  const [{ next: oldest }, newest] = [await reports.neighbours(feedId, 0), reports.latest(feedId)];
  if (oldest === undefined || newest === undefined)
    throw new CommandError(exitCodes.refused, `${name} has no reports. Set --from and --to to measure anyway.`);
  return { from: Math.floor(oldest.validFromMs / 1_000), to: Math.floor(newest.observationsMs / 1_000) };
};

const gapColumns: readonly Column[] = [{ title: 'gap from' }, { title: 'to' }, { title: 'seconds', align: 'right' }];

const renderCoverage = ({ paint }: Session, coverage: Coverage & { readonly name: string }): string => {
  const { name, from, to, reports, coveredSeconds, completeness, gapCount, gaps, medianIntervalMs } = coverage;
  const percent = Math.floor(completeness * 1e6) / 1e4; // rounded down, so that only a span without gaps shows 100
  const pairs = renderPairs([
    ['stream', name],
    ['time range', `${formatSecond(from)} to ${formatSecond(to)}`],
    ['reports', formatCount(reports)],
    ['covered', `${formatCount(coveredSeconds)} of ${formatNumberOf(to - from + 1, 'second')}, ${percent} %`],
    ['median interval', medianIntervalMs === null ? '–' : `${medianIntervalMs / 1_000} s`],
    ['gaps', formatCount(gapCount)],
  ]);
  if (gapCount === 0) return pairs;
  const rows = gaps.map((gap) => [formatSecond(gap.from), formatSecond(gap.to), formatCount(gap.seconds)]);
  const more = gapCount > gaps.length ? `and ${formatCount(gapCount - gaps.length)} more\n` : '';
  return `${pairs}\n${renderTable(gapColumns, rows, paint)}${more}`;
};
