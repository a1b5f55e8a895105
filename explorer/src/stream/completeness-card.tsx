// The completeness card of a stream: coverage of the last hour and day, the gaps, and the day as a strip.
import { type Client, SealpostError } from '@sealpost/client';
import { limits } from '@sealpost/protocol';
import { useExplorer } from '../state/explorer.ts';
import { reportHref } from '../state/router.ts';
import { Failure, Loading, Pill, Time } from '../ui/components.tsx';
import { formatAge, formatCount, formatInterval } from '../ui/format.ts';
import { medianOf, windowsMax } from '../ui/interval.ts';
import { useRenewed } from '../ui/polling.ts';
import type { ListedSpan } from './chart-spans.ts';
import { type Completeness, cellsOf, formatShare, type Gap, gradeOf, measure, measureFrom } from './completeness.ts';

const everyMs = 60_000;
const daySeconds = limits.coverageSecondsMax;
const hourSeconds = 3_600;
/** One cell per 15 minutes. */
const cellCount = 96;
const gapsMax = 6;
/** Reports of the newest seconds may not have arrived yet. */
const settleSeconds = 5;

type Day = { readonly span: { readonly from: number; readonly to: number }; readonly whole: Completeness };

/** Whether the stream had reports in the day before: then its first seconds without one are a gap. False if that day is past retention. */
const hadReportsBefore = async (
  client: Client,
  feedId: string,
  second: number,
  signal: AbortSignal,
): Promise<boolean> => {
  try {
    const { coverage } = await client.coverage(feedId, { from: second - daySeconds, to: second - 1 }, { signal });
    return coverage.reports > 0;
  } catch (error) {
    if (error instanceof SealpostError && error.code === 'timestamp_out_of_bounds') return false;
    throw error;
  }
};

const readDay = async (
  client: Client,
  feedId: string,
  interval: number,
  nowSeconds: number,
  signal: AbortSignal,
): Promise<Day> => {
  // A window that has not ended yet is not a gap.
  const to = nowSeconds - settleSeconds - Math.ceil(interval / 1_000);
  const span = { from: to - daySeconds + 1, to };
  const { coverage } = await client.coverage(feedId, span, { signal });
  const [gap] = coverage.gaps;
  const isStart = gap?.from === span.from && !(await hadReportsBefore(client, feedId, span.from, signal));
  return { span, whole: isStart ? measure(coverage, gap.to + 1) : measure(coverage) };
};

type CompletenessProps = { readonly feedId: string; readonly spans: readonly ListedSpan[] };

export function StreamCompleteness({ feedId, spans }: CompletenessProps) {
  const { session, clock, live, catalog } = useExplorer();
  const client = session.client.value;
  const isEnded = catalog.find(feedId)?.status === 'decommissioned';
  const interval =
    medianOf(spans.slice(-windowsMax).map(({ startMs, endMs }) => endMs - startMs)) ?? live.intervalMs(feedId).value;
  const isKnown = interval !== undefined;
  const { value, failure } = useRenewed(
    async (signal) =>
      interval === undefined
        ? undefined
        : readDay(client, feedId, interval, Math.floor(clock.nowMs.peek() / 1_000), signal),
    everyMs,
    [client, feedId, isKnown],
  );
  const isOld = failure !== undefined || live.state.value === 'reconnecting';
  const isMeasuring = isKnown || live.state.value !== 'live';
  return (
    <section class="card stack" aria-labelledby="completeness-title">
      <h2 id="completeness-title">Interval and completeness</h2>
      {value === undefined && failure !== undefined && <Failure error={failure.error} />}
      {value === undefined &&
        failure === undefined &&
        (isMeasuring ? (
          <Loading label="Measuring" lines={3} />
        ) : (
          <p class="muted">{isEnded ? 'No reports are left.' : 'No data yet.'}</p>
        ))}
      {value !== undefined && isOld && (
        <p>
          <Pill kind="warn">Disconnected</Pill>{' '}
          <span class="small muted">
            Measured up to <Time ms={value.span.to * 1_000} />.
          </span>
        </p>
      )}
      {value !== undefined && (
        <div class={`stack ${isOld ? 'is-old' : ''}`}>
          <Figures feedId={feedId} day={value} interval={interval} isKnown={!isOld} />
        </div>
      )}
    </section>
  );
}

const shareOf = ({ coveredSeconds, from, to }: Completeness): string => formatShare(coveredSeconds, to - from + 1);

const Figures = ({
  feedId,
  day,
  interval,
  isKnown,
}: {
  readonly feedId: string;
  readonly day: Day;
  readonly interval: number | undefined;
  /** Are the figures current? */
  readonly isKnown: boolean;
}) => {
  const { whole, span } = day;
  const hour = measureFrom(whole, span.to - hourSeconds + 1);
  return (
    <>
      <dl class="stream-figures">
        <div>
          <dt>Interval</dt>
          <dd>{interval === undefined ? 'unknown' : formatInterval(interval)}</dd>
        </div>
        <div>
          <dt>Last hour</dt>
          <dd>{hour === undefined ? 'too many gaps' : shareOf(hour)}</dd>
        </div>
        <div>
          <dt>Last 24 h</dt>
          <dd>{shareOf(whole)}</dd>
        </div>
        <div>
          <dt>Gaps</dt>
          <dd>{formatCount(whole.gapCount)}</dd>
        </div>
        {whole.longest !== undefined && (
          <div>
            <dt>Longest gap</dt>
            <dd>{formatAge(whole.longest.seconds * 1_000)}</dd>
          </div>
        )}
      </dl>
      <Strip day={day} />
      {whole.from > span.from && (
        <p class="small muted">
          Measured from the stream’s first report, at <Time ms={whole.from * 1_000} />.
        </p>
      )}
      {whole.gapCount === 0 ? (
        isKnown && <p class="small muted">No gaps: every second has a valid report.</p>
      ) : (
        <GapList feedId={feedId} whole={whole} />
      )}
    </>
  );
};

const Strip = ({ day: { whole, span } }: { readonly day: Day }) => {
  const { times } = useExplorer();
  return (
    <div class="strip-frame">
      <div
        class="strip"
        role="img"
        aria-label={`The last 24 hours in 15-minute steps: ${shareOf(whole)} complete, ${whole.gapCount} gaps`}
      >
        {cellsOf(whole, span, cellCount).map(({ from, covered }) => (
          <span
            key={from}
            class={`cell ${gradeOf(covered)}`}
            title={`${times.format(from * 1_000)}: ${covered === undefined ? 'before the first report' : `${formatShare(covered * 10_000, 10_000)} complete`}`}
          />
        ))}
      </div>
      <div class="strip-scale small muted" aria-hidden="true">
        <span>24 h ago</span>
        <span>now</span>
      </div>
    </div>
  );
};

const GapList = ({ feedId, whole: { gaps, gapCount } }: { readonly feedId: string; readonly whole: Completeness }) => {
  const more = gapCount - Math.min(gapsMax, gaps.length);
  return (
    <table class="small">
      <thead>
        <tr>
          <th scope="col">Gap start</th>
          <th scope="col" class="number">
            Length
          </th>
        </tr>
      </thead>
      <tbody>
        {gaps.slice(0, gapsMax).map((gap) => (
          <GapRow key={gap.from} feedId={feedId} gap={gap} />
        ))}
        {more > 0 && (
          <tr>
            <td colSpan={2} class="muted">
              and {formatCount(more)} more
            </td>
          </tr>
        )}
      </tbody>
    </table>
  );
};

const GapRow = ({ feedId, gap }: { readonly feedId: string; readonly gap: Gap }) => (
  <tr>
    <td>
      <a href={reportHref(feedId, gap.from)}>
        <Time ms={gap.from * 1_000} />
      </a>
    </td>
    <td class="number">{formatAge(gap.seconds * 1_000)}</td>
  </tr>
);
