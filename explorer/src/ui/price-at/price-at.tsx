// The form "What was the price at…": shows the report that was valid then, or the nearest two and why there is none. The time is in the
// address, in UTC, so that Back, a reload and a shared link show the same answer.
import { useEffect, useRef, useState } from 'preact/hooks';
import { useExplorer } from '../../state/explorer.ts';
import { reportHref } from '../../state/router.ts';
import { Exact, Failure, Loading, Notice, Time } from '../components.tsx';
import { formatAge } from '../format.ts';
import { unknownFieldsText } from '../price/unknown-fields.ts';
import { explainMiss, explainTooOld, lookUpPrice, type Neighbor, type PriceLookup } from './price-lookup.ts';
import { describeForm, type ParsedTime, parseTime, toAddressTime } from './time-input.ts';
import '../../styles/price-at.css';
import { Unit } from '../unit.tsx';

type Asked =
  | { readonly phase: 'idle' }
  | { readonly phase: 'wrong'; readonly problem: string }
  | { readonly phase: 'loading' }
  | { readonly phase: 'failed'; readonly error: unknown; readonly seconds: number }
  | { readonly phase: 'answered'; readonly lookup: PriceLookup };

type PriceAtProps = {
  readonly feedId: string;
  /** The initial time; none by default. */
  readonly seconds?: number;
};

/** Looks up a time; a new lookup cancels the one before. */
const useLookup = (feedId: string) => {
  const { session } = useExplorer();
  const [asked, setAsked] = useState<Asked>({ phase: 'idle' });
  const abort = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => abort.current?.abort(), []);
  const set = (next: Asked): void => {
    abort.current?.abort();
    setAsked(next);
  };
  const ask = async (seconds: number): Promise<void> => {
    set({ phase: 'loading' });
    abort.current = new AbortController();
    const { signal } = abort.current;
    const next = await lookUpPrice(session.client.peek(), feedId, seconds, signal).then(
      (lookup): Asked => ({ phase: 'answered', lookup }),
      (error: unknown): Asked => ({ phase: 'failed', error, seconds }),
    );
    if (!signal.aborted) setAsked(next);
  };
  return {
    asked,
    ask,
    refuse: (problem: string) => set({ phase: 'wrong', problem }),
    forget: () => set({ phase: 'idle' }),
  };
};

const argument = 'at';

/** The time in the address, and a function that changes it. */
const useAddressTime = () => {
  const { router } = useExplorer();
  const at = router.address.value.query.get(argument);
  const withTime = (seconds: number): URLSearchParams => {
    const query = new URLSearchParams(router.address.peek().query);
    query.set(argument, toAddressTime(seconds));
    return query;
  };
  return {
    at,
    push: (seconds: number) => router.pushQuery(withTime(seconds)),
    replace: (seconds: number) => router.setQuery(withTime(seconds)),
  };
};

export function PriceAt({ feedId, seconds }: PriceAtProps) {
  const { clock, times, session } = useExplorer();
  const { asked, ask, refuse, forget } = useLookup(feedId);
  const { at, push, replace } = useAddressTime();
  const initial = at ?? (seconds === undefined ? '' : toAddressTime(seconds));
  const [text, setText] = useState(initial);
  const parse = (raw: string, nowMs: number): ParsedTime => parseTime(raw, times.zone.value, nowMs);
  useEffect(() => {
    setText(initial);
    if (at === null) return forget();
    const time = parse(at, clock.nowMs.peek());
    if (time.problem !== undefined) return refuse(time.problem);
    // A link with -5m, or without a zone, becomes one that means the same for everyone.
    if (at !== toAddressTime(time.seconds)) replace(time.seconds);
    else void ask(time.seconds);
  }, [at, feedId, session.userId.value]);
  const submit = (event: Event): void => {
    event.preventDefault();
    const time = parse(text, clock.nowMs.peek());
    if (time.problem !== undefined) refuse(time.problem);
    else if (at === toAddressTime(time.seconds)) void ask(time.seconds);
    else push(time.seconds);
  };
  return (
    <section class="card price-at" aria-labelledby="price-at-title">
      <h2 id="price-at-title">What was the price at…</h2>
      <form class="price-at-form" onSubmit={submit}>
        <div class="field price-at-box">
          <label for="price-at-time">Date and time, Unix, or -5m</label>
          <input
            id="price-at-time"
            autoComplete="off"
            autoCapitalize="off"
            spellcheck={false}
            placeholder="2026-11-15 09:28:17"
            aria-describedby="price-at-echo"
            aria-invalid={asked.phase === 'wrong'}
            value={text}
            onInput={(event) => {
              setText(event.currentTarget.value);
              if (asked.phase === 'wrong') forget();
            }}
          />
        </div>
        <button type="submit" class="primary">
          Look up
        </button>
      </form>
      {asked.phase !== 'wrong' && <Understood text={text} parse={parse} />}
      <div aria-live="polite">
        <Answer feedId={feedId} asked={asked} retry={(again) => void ask(again)} />
      </div>
    </section>
  );
}

type UnderstoodProps = { readonly text: string; readonly parse: (text: string, nowMs: number) => ParsedTime };

/** How the text in the box is understood, in UTC and local time, while the user types. */
const Understood = ({ text, parse }: UnderstoodProps) => {
  const { clock, times } = useExplorer();
  const first = parse(text, clock.nowMs.peek());
  const nowMs = first.problem === undefined && first.form === 'relative' ? clock.nowMs.value : clock.nowMs.peek();
  const time = parse(text, nowMs);
  const said =
    text.trim() === ''
      ? `Without a zone, a time is read as ${times.zoneName()}. -2h30m and -1d count back from now.`
      : time.problem;
  return (
    <p id="price-at-echo" class="small muted price-at-echo">
      {said ?? (time.seconds !== undefined && <Echo {...time} nowMs={nowMs} />)}
    </p>
  );
};

const Echo = ({ seconds, form, nowMs }: Extract<ParsedTime, { seconds: number }> & { readonly nowMs: number }) => {
  const { times } = useExplorer();
  return (
    <>
      {describeForm(form, seconds, nowMs)}: <span>{times.format(seconds * 1_000)}</span> ·{' '}
      <span>{times.formatOther(seconds * 1_000)}</span> · <span>Unix {seconds}</span>
    </>
  );
};

const Answer = ({
  feedId,
  asked,
  retry,
}: {
  readonly feedId: string;
  readonly asked: Asked;
  readonly retry: (seconds: number) => void;
}) => {
  switch (asked.phase) {
    case 'idle':
      return null;
    case 'wrong':
      return (
        <Notice kind="warning" title="Invalid time">
          {asked.problem}
        </Notice>
      );
    case 'loading':
      return <Loading label="Looking it up" lines={2} />;
    case 'failed':
      return <Failure error={asked.error} retry={() => retry(asked.seconds)} />;
    case 'answered':
      return <LookupAnswer feedId={feedId} lookup={asked.lookup} />;
  }
};

/** The report that was found, or why there is none. */
export function LookupAnswer({ feedId, lookup }: { readonly feedId: string; readonly lookup: PriceLookup }) {
  const { clock, times, live } = useExplorer();
  if (lookup.kind === 'too-old')
    return (
      <Notice kind="warning" title="Before retained history">
        {explainTooOld(lookup, times.format)}
      </Notice>
    );
  if (lookup.kind === 'miss')
    return (
      <div class="price-at-answer">
        <Notice kind="warning" title="No report at that time">
          {explainMiss(lookup, Math.floor(clock.nowMs.peek() / 1_000), times.format)}
        </Notice>
        <div class="price-at-neighbors">
          <NeighborCard feedId={feedId} title="Before" neighbor={lookup.previous} asked={lookup.seconds} />
          <NeighborCard feedId={feedId} title="After" neighbor={lookup.next} asked={lookup.seconds} />
        </div>
      </div>
    );
  const { report, seconds } = lookup;
  const { decoded } = report;
  const digits = live.digits(feedId).value;
  return (
    <div class="price-at-answer">
      {decoded === undefined ? (
        <Notice kind="warning" title="No price known">
          The fields of the report for that time are not known: {unknownFieldsText(feedId)}.
        </Notice>
      ) : (
        <p class="price-at-price">
          <Exact value={decoded.price} digits={digits} /> <Unit decoded={decoded} />
        </p>
      )}
      <p class="small muted">
        valid <WindowText fromMs={report.validFromMs} toMs={report.observationsMs} />
      </p>
      <p>
        <a href={reportHref(feedId, seconds)}>Open report and proof</a>
      </p>
    </div>
  );
}

/** Both ends belong to a window. */
const WindowText = ({ fromMs, toMs }: { readonly fromMs: number; readonly toMs: number }) =>
  fromMs === toMs ? (
    <>
      at <Time ms={toMs} />
    </>
  ) : (
    <>
      from <Time ms={fromMs} /> to <Time ms={toMs} />
    </>
  );

const NeighborCard = ({
  feedId,
  title,
  neighbor,
  asked,
}: {
  readonly feedId: string;
  readonly title: string;
  readonly neighbor: Neighbor | undefined;
  readonly asked: number;
}) => {
  const { live } = useExplorer();
  if (neighbor === undefined)
    return (
      <div class="price-at-neighbor">
        <h3>{title}</h3>
        <p class="muted">No report</p>
      </div>
    );
  const { validFromTimestamp, observationsTimestamp, decoded } = neighbor;
  const distance = observationsTimestamp < asked ? asked - observationsTimestamp : validFromTimestamp - asked;
  return (
    <div class="price-at-neighbor">
      <h3>
        {title} <span class="small muted">by {formatAge(distance * 1_000)}</span>
      </h3>
      {decoded !== undefined && (
        <p class="price-at-price small-price">
          <Exact value={decoded.price} digits={live.digits(feedId).value} /> <Unit decoded={decoded} />
        </p>
      )}
      <p class="small muted">
        valid <WindowText fromMs={validFromTimestamp * 1_000} toMs={observationsTimestamp * 1_000} />
      </p>
      <a href={reportHref(feedId, observationsTimestamp)}>Open report</a>
    </div>
  );
};
