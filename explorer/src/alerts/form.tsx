// The form that adds or edits an alert. The address opens it with the stream and price of another page.
import { formatDecimal } from '@sealpost/client';
import type { CatalogEntry } from '@sealpost/protocol';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Alerts } from '../state/alerts/alerts.ts';
import {
  type Alert,
  type AlertRule,
  alertsMax,
  intervalsMax,
  isFeedId,
  parseLevel,
  parsePercent,
} from '../state/alerts/rules.ts';
import { useExplorer } from '../state/explorer.ts';
import { shortId } from '../ui/format.ts';
import { isRateStream, percentDecimals } from '../ui/price-unit.ts';
import { readAlertAddress } from './alert-address.ts';

const kinds = {
  above: 'Price rises to a level',
  below: 'Price falls to a level',
  stale: 'No report for some intervals',
  unverified: 'A report fails verification',
} as const;

type Kind = keyof typeof kinds;

type Draft = {
  readonly feedId: string;
  readonly kind: Kind;
  /** As entered: in percent for a rate. */
  readonly level: string;
  readonly repeats: boolean;
  readonly intervals: string;
};

const emptyDraft: Draft = { feedId: '', kind: 'above', level: '', repeats: false, intervals: '5' };

/** A level as the form shows it: a rate, which is a ratio, in percent. */
const levelText = (feedId: string, level: bigint): string =>
  isRateStream(feedId) ? formatDecimal(level, percentDecimals) : formatDecimal(level);

const draftOf = ({ feedId, rule }: Alert): Draft => {
  if (rule.kind === 'stale') return { ...emptyDraft, feedId, kind: 'stale', intervals: String(rule.intervals) };
  if (rule.kind === 'unverified') return { ...emptyDraft, feedId, kind: 'unverified' };
  return { ...emptyDraft, feedId, kind: rule.direction, level: levelText(feedId, rule.level), repeats: rule.repeats };
};

/** The rule, or what is missing. */
const readDraft = ({ feedId, kind, level, repeats, intervals }: Draft): AlertRule | string => {
  if (!isFeedId(feedId)) return 'Choose a stream.';
  if (kind === 'unverified') return { kind };
  if (kind === 'stale') {
    const count = Number(intervals);
    const isValid = Number.isInteger(count) && count >= 1 && count <= intervalsMax;
    return isValid ? { kind, intervals: count } : `Enter a number of intervals from 1 to ${intervalsMax}.`;
  }
  const isRate = isRateStream(feedId);
  const parsed = isRate ? parsePercent(level) : parseLevel(level);
  if (parsed !== undefined) return { kind: 'price', direction: kind, level: parsed, repeats };
  return isRate
    ? 'Enter a rate in percent, such as 4.25, with at most 16 decimals.'
    : 'Enter a price, such as 64,120.55, with at most 18 decimals.';
};

/** Adds or changes the alert; returns what is wrong, if anything. */
const saveDraft = (alerts: Alerts, draft: Draft, edited: Alert | undefined): string | undefined => {
  const rule = readDraft(draft);
  if (typeof rule === 'string') return rule;
  if (edited !== undefined) alerts.change(edited.id, rule);
  else if (!alerts.add(draft.feedId, rule)) return `There are ${alertsMax} alerts already. Delete one first.`;
  return undefined;
};

type Said = { readonly text: string; readonly isProblem: boolean };

type CardProps = {
  readonly edited: Alert | undefined;
  /** How often an alert was chosen to be edited; the form gets the focus each time. */
  readonly edits: number;
  readonly isFull: boolean;
  readonly onDone: () => void;
};

/** The card stays while its form begins anew for each alert, so that screen readers announce what became of the last one. */
export function AlertForm(props: CardProps) {
  const { edited, isFull } = props;
  const [said, setSaid] = useState<Said | undefined>(undefined);
  return (
    <section class="card" aria-labelledby="alert-form-title">
      <h2 id="alert-form-title">{edited === undefined ? 'Add an alert' : 'Edit the alert'}</h2>
      <DraftForm key={edited?.id ?? 'new'} {...props} say={setSaid} />
      <p class={`small ${said?.isProblem === true ? 'bad' : 'muted'}`} role="status">
        {said?.text ?? (isFull ? `There are ${alertsMax} alerts, as many as there may be.` : '')}
      </p>
    </section>
  );
}

type FormProps = CardProps & { readonly say: (said: Said | undefined) => void };

const DraftForm = ({ edited, edits, isFull, onDone, say }: FormProps) => {
  const { alerts, router } = useExplorer();
  const [draft, setDraft] = useState<Draft>(() => {
    if (edited !== undefined) return draftOf(edited);
    const { feedId, level } = readAlertAddress(router.address.peek().query);
    const parsed = parseLevel(level);
    return { ...emptyDraft, feedId, level: parsed === undefined ? '' : levelText(feedId, parsed) };
  });
  const [isAdded, setAdded] = useState(false);
  const first = useRef<HTMLSelectElement>(null);
  useEffect(() => {
    if (edited === undefined) return;
    say(undefined);
    first.current?.focus(); // the form is above the list, maybe out of view
  }, [edits]);
  const change = (part: Partial<Draft>): void => {
    setDraft((last) => ({ ...last, ...part }));
    setAdded(false);
    say(undefined);
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    if (isAdded) return; // a double click; the next alert begins with a change
    const problem = saveDraft(alerts, draft, edited);
    const done = edited === undefined ? 'Alert added.' : 'Alert saved.';
    say({ text: problem ?? done, isProblem: problem !== undefined });
    if (problem !== undefined) return;
    if (edited === undefined) setAdded(true);
    else onDone();
    void alerts.askPermission();
  };
  return (
    <form class="alert-form" onSubmit={submit} noValidate>
      <StreamChoice feedId={draft.feedId} isFixed={edited !== undefined} onChange={(feedId) => change({ feedId })} />
      <label class="field">
        <span>When</span>
        <select
          ref={first}
          value={draft.kind}
          onChange={(event) => change({ kind: event.currentTarget.value as Kind })} // one of the options
        >
          {Object.entries(kinds).map(([kind, text]) => (
            <option key={kind} value={kind}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <RuleFields draft={draft} onChange={change} />
      <div class="row alert-acts">
        <button type="submit" class="primary" disabled={isFull && edited === undefined}>
          {edited === undefined ? 'Add alert' : 'Save'}
        </button>
        {edited !== undefined && (
          <button type="button" onClick={onDone}>
            Cancel
          </button>
        )}
      </div>
    </form>
  );
};

const StreamChoice = ({
  feedId,
  isFixed,
  onChange,
}: {
  readonly feedId: string;
  readonly isFixed: boolean;
  readonly onChange: (feedId: string) => void;
}) => {
  const { catalog, session } = useExplorer();
  const state = catalog.state.value;
  const isAnonymous = session.userId.value === undefined;
  // A stream that has ended gets no reports; the one of an alert from before is still named.
  const isOffered = (one: CatalogEntry): boolean => one.status !== 'decommissioned' || one.feedId === feedId;
  const streams =
    state.phase === 'ready'
      ? state.streams.filter((one) => isOffered(one) && (isAnonymous || state.readable.has(one.feedId)))
      : [];
  const isKnown = streams.some((one) => one.feedId === feedId);
  return (
    <label class="field">
      <span>Stream</span>
      <select value={feedId} disabled={isFixed} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">Choose a stream</option>
        {!isKnown && feedId !== '' && <option value={feedId}>{shortId(feedId)}</option>}
        {streams.map((one) => (
          <option key={one.feedId} value={one.feedId}>
            {one.baseAsset}/{one.quoteAsset} · {shortId(one.feedId)}
          </option>
        ))}
      </select>
    </label>
  );
};

const RuleFields = ({
  draft,
  onChange,
}: {
  readonly draft: Draft;
  readonly onChange: (part: Partial<Draft>) => void;
}) => {
  const { catalog } = useExplorer();
  const unit = isRateStream(draft.feedId) ? '%' : catalog.find(draft.feedId)?.quoteAsset;
  if (draft.kind === 'unverified') return null;
  if (draft.kind === 'stale')
    return (
      <label class="field">
        <span>Intervals</span>
        <input
          inputMode="numeric"
          value={draft.intervals}
          onInput={(event) => onChange({ intervals: event.currentTarget.value })}
        />
      </label>
    );
  return (
    <>
      <label class="field">
        <span>{unit === undefined ? 'Level' : `Level (${unit})`}</span>
        <input
          inputMode="decimal"
          autoComplete="off"
          value={draft.level}
          onInput={(event) => onChange({ level: event.currentTarget.value })}
        />
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={draft.repeats}
          onChange={(event) => onChange({ repeats: event.currentTarget.checked })}
        />
        Every time, after it has moved back by 0.1 % of the level
      </label>
    </>
  );
};
