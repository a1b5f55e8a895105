// The reports of a day, a page at a time. Day, time and order are in the address.
import { decode } from '@sealpost/client';
import { daySeconds, type ReportJson } from '@sealpost/protocol';
import { useEffect, useState } from 'preact/hooks';
import { useExplorer } from '../../state/explorer.ts';
import { Failure, Loading, Notice } from '../../ui/components.tsx';
import { useLoaded } from '../../ui/loaded.ts';
import { explainTooOld, readTooOld } from '../../ui/price-at/price-lookup.ts';
import { type Span, spanOf } from '../chart-spans.ts';
import {
  type DayChoice,
  type DayOrder,
  edgeOf,
  parseDayStart,
  toDayText,
  toTimeText,
  writeDayChoice,
} from './day-address.ts';
import { type DayPage, readDayPage } from './day-pages.ts';
import { ReportTable } from './report-table.tsx';

type DayProps = { readonly feedId: string; readonly choice: DayChoice };

export const DayReports = ({ feedId, choice }: DayProps) => {
  const { session, live, router, clock } = useExplorer();
  const client = session.client.value;
  const { side, second } = edgeOf(choice);
  const [page, reload] = useLoaded(
    (signal) => {
      const intervalMs = live.intervalMs(feedId).peek();
      const nowSeconds = Math.floor(clock.nowMs.peek() / 1_000);
      return readDayPage(client, { feedId, day: choice.day, edge: { side, second }, intervalMs, nowSeconds }, signal);
    },
    [client, feedId, choice.day, side, second],
  );
  const [shown, setShown] = useState<DayPage | undefined>(undefined); // stays while the next page is loading
  useEffect(() => {
    if (page.phase !== 'loading') setShown(page.phase === 'ready' ? page.value : undefined);
  }, [page]);
  const go = (next: Partial<DayChoice>): void =>
    router.pushQuery(writeDayChoice(router.address.peek().query, { ...choice, ...next }));
  return (
    <>
      <DayForm choice={choice} go={go} />
      <div class={page.phase === 'loading' ? 'day-page is-loading' : 'day-page'} aria-busy={page.phase === 'loading'}>
        {page.phase === 'failed' && <DayFailure error={page.error} retry={reload} />}
        {page.phase === 'loading' && shown === undefined && <Loading label="Loading the reports" lines={6} />}
        {shown !== undefined && <DayTable feedId={feedId} choice={choice} page={shown} />}
      </div>
      <Steps choice={choice} page={shown} go={go} />
    </>
  );
};

type Go = (next: Partial<DayChoice>) => void;

const DayForm = ({ choice, go }: { readonly choice: DayChoice; readonly go: Go }) => {
  const { clock } = useExplorer();
  const today = toDayText(Math.floor(clock.nowMs.peek() / 1_000));
  const [day, setDay] = useState('');
  const [time, setTime] = useState('');
  const chosenTime = choice.edge === undefined ? '' : toTimeText(choice.edge.second);
  useEffect(() => {
    setDay(toDayText(choice.day));
    setTime(chosenTime);
  }, [choice.day, chosenTime]);
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const submit = (event: Event): void => {
    event.preventDefault();
    const start = parseDayStart(day);
    const ofDay = time === '' ? undefined : Date.parse(`1970-01-01T${time}Z`) / 1_000;
    if (start === undefined) setProblem('Enter a date, such as 2026-11-15.');
    else if (ofDay !== undefined && Number.isNaN(ofDay)) setProblem('Enter a time, such as 09:28:17, or none.');
    else {
      setProblem(undefined);
      const side = choice.order === 'newest' ? 'before' : 'after';
      go({ day: start, edge: ofDay === undefined ? undefined : { side, second: start + ofDay } });
    }
  };
  const step = (days: number): void => go({ day: choice.day + days * daySeconds, edge: undefined });
  return (
    <form class="day-form" onSubmit={submit}>
      <div class="field">
        <label for="day-date">Date (UTC)</label>
        <input
          id="day-date"
          type="date"
          max={today}
          value={day}
          onInput={(event) => setDay(event.currentTarget.value)}
        />
      </div>
      <div class="field">
        <label for="day-time">{choice.order === 'newest' ? 'Up to' : 'From'} (UTC, optional)</label>
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
        <button type="button" onClick={() => step(-1)}>
          ← Previous day
        </button>
        <button
          type="button"
          aria-disabled={toDayText(choice.day) >= today}
          onClick={() => toDayText(choice.day) < today && step(1)}
        >
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

/** The reports that this page can decode; others have no price to show. */
const spansOf = (reports: readonly ReportJson[]): readonly Span[] =>
  reports.flatMap((report) => {
    try {
      return [spanOf(decode(report))];
    } catch {
      return []; // of a schema that this page does not know
    }
  });

const DayTable = ({ feedId, choice, page }: DayProps & { readonly page: DayPage }) => {
  const spans = spansOf(page.reports);
  if (page.reports.length === 0)
    return (
      <p class="muted">
        {choice.edge === undefined
          ? `No reports on ${toDayText(choice.day)} (UTC).`
          : `No reports ${choice.edge.side} ${toTimeText(choice.edge.second)} on ${toDayText(choice.day)} (UTC).`}
      </p>
    );
  return <ReportTable feedId={feedId} spans={choice.order === 'newest' ? spans.toReversed() : spans} />;
};

type StepsProps = { readonly choice: DayChoice; readonly page: DayPage | undefined; readonly go: Go };

/** Pages within the day. Buttons stay in place and keep the focus, so that a page can be turned again and again. */
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
