// The reports of a day, a page at a time. Day, time and order are in the address.
import { daySeconds } from '@sealpost/protocol';
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { useExplorer } from '../../state/explorer.ts';
import { readLiveReport } from '../../state/live-prices.ts';
import { Failure, Loading, Notice } from '../../ui/components.tsx';
import { type Loaded, useLoaded } from '../../ui/loaded.ts';
import { explainTooOld, readTooOld } from '../../ui/price-at/price-lookup.ts';
import { spanOf } from '../chart-spans.ts';
import {
  type DayChoice,
  type DayOrder,
  edgeOf,
  isSameRead,
  parseDayStart,
  toDayText,
  toTimeText,
  writeDayChoice,
} from './day-address.ts';
import { type DayPage, readDayPage } from './day-pages.ts';
import { ReportTable } from './report-table.tsx';

type DayProps = { readonly feedId: string; readonly choice: DayChoice };

/** A page, and the choice that it was read for. */
type ChosenPage = DayPage & { readonly of: DayChoice };

/** The page of a choice. The one before stays while it is loading; `isCurrent` is false until then. */
const useDayPage = ({ feedId, choice }: DayProps) => {
  const { session, live, clock } = useExplorer();
  const client = session.client.value;
  const edge = edgeOf(choice);
  const [state, reload] = useLoaded(
    async (signal): Promise<ChosenPage> => {
      const intervalMs = live.intervalMs(feedId).peek();
      const nowSeconds = Math.floor(clock.nowMs.peek() / 1_000);
      const page = await readDayPage(client, { feedId, day: choice.day, edge, intervalMs, nowSeconds }, signal);
      return { ...page, of: choice };
    },
    [client, feedId, choice.day, edge.side, edge.second],
  );
  const [shown, setShown] = useState<ChosenPage | undefined>(undefined);
  useEffect(() => {
    if (state.phase !== 'loading') setShown(state.phase === 'ready' ? state.value : undefined);
  }, [state]);
  const isCurrent = state.phase === 'ready' && shown !== undefined && isSameRead(shown.of, choice);
  return { state, reload, shown, isCurrent };
};

export function DayReports({ feedId, choice }: DayProps) {
  const { router } = useExplorer();
  const { state, reload, shown, isCurrent } = useDayPage({ feedId, choice });
  const go = (next: Partial<DayChoice>): void => {
    const { query } = router.address.peek();
    const chosen = writeDayChoice(query, { ...choice, ...next });
    if (chosen.toString() === query.toString()) reload();
    else router.pushQuery(chosen);
  };
  const isLoading = state.phase === 'loading';
  return (
    <>
      <DayForm choice={choice} go={go} hasEarlier={hasEarlierDays(choice.day, state)} />
      <div class={isLoading ? 'day-page is-loading' : 'day-page'} aria-busy={isLoading}>
        {state.phase === 'failed' && <DayFailure error={state.error} retry={reload} />}
        {isLoading && shown === undefined && <Loading label="Loading the reports" lines={6} />}
        {shown !== undefined && <DayTable feedId={feedId} order={choice.order} page={shown} />}
      </div>
      <Steps choice={choice} page={isCurrent ? shown : undefined} go={go} />
    </>
  );
}

/** Whether there may be reports on earlier days, by what the server said about this one. */
const hasEarlierDays = (day: number, state: Loaded<ChosenPage>): boolean => {
  if (day < daySeconds) return false;
  if (state.phase === 'ready') return state.value.of.day !== day || state.value.hasEarlierDays;
  const oldest = state.phase === 'failed' ? readTooOld(state.error)?.oldestTimestamp : undefined;
  return oldest === undefined || oldest < day;
};

type Go = (next: Partial<DayChoice>) => void;

/** The fields of the form, which follow the address, and what is wrong with them. */
const useDayFields = (choice: DayChoice, go: Go) => {
  const [day, setDay] = useState('');
  const [time, setTime] = useState('');
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const chosenTime = choice.edge === undefined ? '' : toTimeText(choice.edge.second);
  useLayoutEffect(() => {
    // Before the next input: a late effect would overwrite it.
    setDay(toDayText(choice.day));
    setTime(chosenTime);
    setProblem(undefined);
  }, [choice.day, chosenTime, choice.order]);
  const submit = (event: Event): void => {
    event.preventDefault();
    const start = parseDayStart(day);
    const ofDay = time === '' ? undefined : Date.parse(`1970-01-01T${time}Z`) / 1_000;
    if (start === undefined) setProblem('Enter a date, such as 2026-11-15.');
    else if (ofDay !== undefined && Number.isNaN(ofDay)) setProblem('Enter a time, such as 09:28:17, or none.');
    else {
      setProblem(undefined);
      const { side } = edgeOf(choice);
      go({ day: start, edge: ofDay === undefined ? undefined : { side, second: start + ofDay } });
    }
  };
  return { day, setDay, time, setTime, problem, submit };
};

type DayFormProps = { readonly choice: DayChoice; readonly go: Go; readonly hasEarlier: boolean };

const DayForm = ({ choice, go, hasEarlier }: DayFormProps) => {
  const { clock } = useExplorer();
  const today = toDayText(Math.floor(clock.nowMs.peek() / 1_000));
  const { day, setDay, time, setTime, problem, submit } = useDayFields(choice, go);
  const step = (days: number): void => go({ day: choice.day + days * daySeconds, edge: undefined });
  const hasLater = toDayText(choice.day) < today;
  return (
    <form class="day-form" onSubmit={submit}>
      <div class="field">
        <label for="day-date">Date (UTC)</label>
        <input
          id="day-date"
          type="date"
          min="1970-01-01"
          max={today}
          value={day}
          onInput={(event) => setDay(event.currentTarget.value)}
        />
      </div>
      <div class="field">
        <label for="day-time">{edgeOf(choice).side === 'before' ? 'Up to' : 'From'} (UTC, optional)</label>
        <input
          id="day-time"
          type="time"
          step={1}
          value={time}
          onInput={(event) => setTime(event.currentTarget.value)}
        />
      </div>
      <button type="submit">Show</button>
      <fieldset class="button-group" aria-label="Day">
        <button type="button" aria-disabled={!hasEarlier} onClick={() => hasEarlier && step(-1)}>
          ← Previous day
        </button>
        <button type="button" aria-disabled={!hasLater} onClick={() => hasLater && step(1)}>
          Next day →
        </button>
      </fieldset>
      <OrderButtons order={choice.order} choose={(order) => go({ order })} />
      {problem !== undefined && (
        <p role="alert" class="bad small">
          {problem}
        </p>
      )}
    </form>
  );
};

const orders = { newest: 'Newest first', oldest: 'Oldest first' } as const;

const OrderButtons = ({ order, choose }: { readonly order: DayOrder; readonly choose: (order: DayOrder) => void }) => (
  <fieldset class="button-group" aria-label="Order">
    {(['newest', 'oldest'] as const).map((name) => (
      <button key={name} type="button" aria-pressed={name === order} onClick={() => name !== order && choose(name)}>
        {orders[name]}
      </button>
    ))}
  </fieldset>
);

const DayFailure = ({ error, retry }: { readonly error: unknown; readonly retry: () => void }) => {
  const { times } = useExplorer();
  const tooOld = readTooOld(error);
  if (tooOld === undefined) return <Failure error={error} retry={retry} />;
  return (
    <Notice kind="warning" title="Before retained history">
      {explainTooOld(tooOld, times.format)}
    </Notice>
  );
};

type DayTableProps = { readonly feedId: string; readonly order: DayOrder; readonly page: ChosenPage };

const DayTable = ({ feedId, order, page }: DayTableProps) => {
  const { times } = useExplorer();
  const { day, edge } = page.of;
  const kept =
    page.retainedFrom === undefined ? '' : `This server keeps reports from ${times.format(page.retainedFrom * 1_000)}.`;
  const spans = page.reports.flatMap((report) => readLiveReport(report) ?? []).map(spanOf);
  if (page.reports.length === 0)
    return (
      <p class="muted">
        {edge === undefined
          ? `No reports on ${toDayText(day)} (UTC).`
          : `No reports ${edge.side} ${toTimeText(edge.second)} on ${toDayText(day)} (UTC).`}
        {kept !== '' ? ` ${kept}` : !page.hasEarlierDays && ' The stream has none before that day.'}
      </p>
    );
  const ordered = order === 'newest' ? spans.toReversed() : spans;
  return (
    <>
      <ReportTable feedId={feedId} spans={ordered} day={toDayText(day)} />
      {kept !== '' && <p class="small muted">{kept}</p>}
    </>
  );
};

type StepsProps = { readonly choice: DayChoice; readonly page: DayPage | undefined; readonly go: Go };

/** Pages within the day; none while a page is loading. Buttons stay in place and keep the focus, so that a page can be turned again and again. */
const Steps = ({ choice, page, go }: StepsProps) => {
  const [first, last] = [page?.reports[0], page?.reports.at(-1)];
  const older = page?.hasOlder && first !== undefined ? first.observationsTimestamp - 1 : undefined;
  const newer = page?.hasNewer && last !== undefined ? last.observationsTimestamp + 1 : undefined;
  const canGoOlder = older !== undefined && older >= choice.day;
  const canGoNewer = newer !== undefined && newer < choice.day + daySeconds;
  const buttons = [
    <button
      key="newer"
      type="button"
      aria-disabled={!canGoNewer}
      onClick={() => canGoNewer && go({ edge: { side: 'after', second: newer } })}
    >
      Newer reports
    </button>,
    <button
      key="older"
      type="button"
      aria-disabled={!canGoOlder}
      onClick={() => canGoOlder && go({ edge: { side: 'before', second: older } })}
    >
      Older reports
    </button>,
  ];
  return (
    <nav class="row" aria-label="Pages of the day">
      {choice.order === 'newest' ? buttons : buttons.toReversed()}
    </nav>
  );
};
