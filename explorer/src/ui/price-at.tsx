// The form "What was the price at…": shows the report that was valid then, or the nearest two and why there is none.
import { useRef, useState } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { reportHref } from '../state/router.ts';
import type { Times } from '../state/settings/times.ts';
import { Exact, Failure, Loading, Notice, Time } from './components.tsx';
import { formatAge } from './format.ts';
import { explainMiss, explainTooOld, type Lookup, lookUp, type Neighbor } from './price-lookup.ts';
import { parseTime, toInputValue, type Zone } from './time-input.ts';
import '../styles/price-at.css';
import { Unit } from './unit.tsx';

type Asked =
  | { readonly phase: 'idle' }
  | { readonly phase: 'wrong'; readonly problem: string }
  | { readonly phase: 'loading' }
  | { readonly phase: 'failed'; readonly error: unknown; readonly seconds: number }
  | { readonly phase: 'answered'; readonly lookup: Lookup };

type PriceAtProps = {
  readonly feedId: string;
  /** The initial time; a minute ago by default. */
  readonly seconds?: number;
};

/** Looks up a time; a new lookup cancels the one before. */
const useLookup = (feedId: string) => {
  const { session } = useExplorer();
  const [asked, setAsked] = useState<Asked>({ phase: 'idle' });
  const abort = useRef<AbortController | undefined>(undefined);
  const ask = async (seconds: number): Promise<void> => {
    abort.current?.abort();
    abort.current = new AbortController();
    const { signal } = abort.current;
    setAsked({ phase: 'loading' });
    const next = await lookUp(session.client.peek(), feedId, seconds, signal).then(
      (lookup): Asked => ({ phase: 'answered', lookup }),
      (error: unknown): Asked => ({ phase: 'failed', error, seconds }),
    );
    if (!signal.aborted) setAsked(next);
  };
  return { asked, ask, refuse: (problem: string) => setAsked({ phase: 'wrong', problem }) };
};

export const PriceAt = ({ feedId, seconds }: PriceAtProps) => {
  const { clock, times } = useExplorer();
  const { asked, ask, refuse } = useLookup(feedId);
  const [zone, setZone] = useState<Zone>('utc');
  const [text, setText] = useState(() => toInputValue(seconds ?? Math.floor(clock.nowMs.peek() / 1_000) - 60, 'utc'));
  const [isUnix, setUnix] = useState(false);
  const time = parseTime(text, zone);
  const submit = (event: Event): void => {
    event.preventDefault();
    if ('problem' in time) refuse(time.problem);
    else void ask(time.seconds);
  };
  // Keeps the time when the user switches its format.
  const rewrite = (nextZone: Zone, nextUnix: boolean): void => {
    if ('seconds' in time) setText(nextUnix ? String(time.seconds) : toInputValue(time.seconds, nextZone));
    else setText('');
    setZone(nextZone);
    setUnix(nextUnix);
  };
  return (
    <section class="card price-at" aria-labelledby="price-at-title">
      <h2 id="price-at-title">What was the price at…</h2>
      <form class="price-at-form" onSubmit={submit}>
        <TimeBox text={text} isUnix={isUnix} zone={zone} onText={setText} />
        <ZoneSwitch zone={zone} isUnix={isUnix} onChange={rewrite} />
        <button type="submit" class="primary">
          Look up
        </button>
      </form>
      <p class="small muted price-at-echo">{'seconds' in time ? echoOf(time.seconds, times) : time.problem}</p>
      <div aria-live="polite">
        <Answer feedId={feedId} asked={asked} retry={(again) => void ask(again)} />
      </div>
    </section>
  );
};

const echoOf = (seconds: number, times: Times): string =>
  `${times.format(seconds * 1_000)} · ${times.formatOther(seconds * 1_000)} · Unix ${seconds}`;

const TimeBox = ({
  text,
  isUnix,
  zone,
  onText,
}: {
  readonly text: string;
  readonly isUnix: boolean;
  readonly zone: Zone;
  readonly onText: (text: string) => void;
}) => (
  <div class="field price-at-box">
    <label for="price-at-time">
      {isUnix ? 'Unix timestamp' : `Date and time, ${zone === 'utc' ? 'UTC' : 'local'}`}
    </label>
    {isUnix ? (
      <input
        key="unix"
        id="price-at-time"
        inputMode="numeric"
        autoComplete="off"
        value={text}
        onInput={(event) => onText(event.currentTarget.value)}
      />
    ) : (
      <input
        key="date"
        id="price-at-time"
        type="datetime-local"
        step={1}
        value={text}
        onInput={(event) => onText(event.currentTarget.value)}
      />
    )}
  </div>
);

const ZoneSwitch = ({
  zone,
  isUnix,
  onChange,
}: {
  readonly zone: Zone;
  readonly isUnix: boolean;
  readonly onChange: (zone: Zone, isUnix: boolean) => void;
}) => (
  <fieldset class="button-group" aria-label="Time format">
    <button type="button" aria-pressed={!isUnix && zone === 'utc'} onClick={() => onChange('utc', false)}>
      UTC
    </button>
    <button type="button" aria-pressed={!isUnix && zone === 'local'} onClick={() => onChange('local', false)}>
      Local
    </button>
    <button type="button" aria-pressed={isUnix} onClick={() => onChange(zone, true)}>
      Unix
    </button>
  </fieldset>
);

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
        <Notice kind="warning" title="Invalid date or time">
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
export const LookupAnswer = ({ feedId, lookup }: { readonly feedId: string; readonly lookup: Lookup }) => {
  const { clock, times } = useExplorer();
  if (lookup.kind === 'too-old')
    return (
      <Notice kind="warning" title="Before retained history">
        {explainTooOld(lookup, times.format)}
      </Notice>
    );
  if (lookup.kind === 'miss')
    return (
      <div class="stack price-at-answer">
        <Notice kind="warning" title="No report at that time">
          {explainMiss(lookup, Math.floor(clock.nowMs.peek() / 1_000), times.format)}
        </Notice>
        <div class="price-at-neighbors">
          <NeighborCard feedId={feedId} title="Before" neighbor={lookup.previous} asked={lookup.seconds} />
          <NeighborCard feedId={feedId} title="After" neighbor={lookup.next} asked={lookup.seconds} />
        </div>
      </div>
    );
  const { decoded, seconds } = lookup;
  return (
    <div class="price-at-answer">
      <p class="price-at-price">
        <Exact value={decoded.price} /> <Unit decoded={decoded} />
      </p>
      <p class="small muted">
        valid <WindowText fromMs={decoded.validFromMs} toMs={decoded.observationsMs} />
      </p>
      <p>
        <a href={reportHref(feedId, seconds)}>Open report and proof</a>
      </p>
    </div>
  );
};

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
          <Exact value={decoded.price} /> <Unit decoded={decoded} />
        </p>
      )}
      <p class="small muted">
        valid <WindowText fromMs={validFromTimestamp * 1_000} toMs={observationsTimestamp * 1_000} />
      </p>
      <a href={reportHref(feedId, observationsTimestamp)}>Open report</a>
    </div>
  );
};
