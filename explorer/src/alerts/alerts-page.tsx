// The page of alerts: whether they can work now, a form to add one, the list, and the history.
import { useEffect, useRef, useState } from 'preact/hooks';
import { type Alert, alertsMax, ruleText } from '../state/alerts/rules.ts';
import { useExplorer } from '../state/explorer.ts';
import { streamHref } from '../state/router.ts';
import { explainError } from '../state/session.ts';
import { AddressProblems } from '../ui/address-problems.tsx';
import { Notice, Pill, Time, useTitle } from '../ui/components.tsx';
import { shortId } from '../ui/format.ts';
import { isRateStream } from '../ui/price-unit.ts';
import { SignInButton } from '../ui/sign-in-dialog.tsx';
import { readAlertAddress } from './alert-address.ts';
import { AlertForm } from './form.tsx';
import '../styles/alerts.css';

export function AlertsPage() {
  const { alerts, router } = useExplorer();
  const { edited, edits, edit, endEdit } = useEdited();
  useTitle('Alerts');
  const list = alerts.list.value;
  return (
    <div class="stack alerts-page">
      <header>
        <h1>
          Alerts <span class="muted alert-count">{list.length}</span>
        </h1>
        <p class="muted">
          This browser watches prices while a tab of this page is open and you are signed in. Alerts are kept in this
          browser only.
        </p>
      </header>
      <AlertConditions />
      <AddressProblems problems={readAlertAddress(router.address.value.query).problems} />
      <AlertForm
        edited={list.find(({ id }) => id === edited)}
        isFull={list.length >= alertsMax}
        edits={edits}
        onDone={endEdit}
      />
      <AlertList list={list} onEdit={edit} />
      <AlertHistory />
    </div>
  );
}

const editId = (id: string): string => `edit-${id}`;

/** The alert in the form. When the form is done with it, the focus returns to its button. */
const useEdited = () => {
  const [edited, setEdited] = useState<string | undefined>(undefined);
  const [edits, setEdits] = useState(0);
  const last = useRef<string | undefined>(undefined);
  useEffect(() => {
    if (edited === undefined && last.current !== undefined) document.getElementById(editId(last.current))?.focus();
    last.current = edited;
  }, [edited]);
  return {
    edited,
    /** Rises with every "Edit", also of the alert that is in the form already. */
    edits,
    edit: (id: string) => {
      setEdited(id);
      setEdits((count) => count + 1);
    },
    endEdit: () => setEdited(undefined),
  };
};

/** What keeps alerts from working now, and how notifications are shown. */
const AlertConditions = () => {
  const { session, live, alerts } = useExplorer();
  const isWatching = alerts.list.value.some(({ isPaused }) => !isPaused);
  return (
    <>
      {session.userId.value === undefined && (
        <Notice kind="warning" title="Sign in to use alerts" action={<SignInButton />}>
          Prices need an account. Your alerts stay here and resume when you are signed in.
        </Notice>
      )}
      {session.userId.value !== undefined && isWatching && live.state.value === 'reconnecting' && (
        <Notice kind="warning" title="Cannot tell: disconnected">
          No alert is triggered until this page is connected again. It then catches up on the reports that it missed.
        </Notice>
      )}
      {alerts.problem.value !== undefined && <Unverified error={alerts.problem.value} />}
      <NotificationState />
    </>
  );
};

const Unverified = ({ error }: { readonly error: unknown }) => {
  const { problem, advice } = explainError(error);
  return (
    <Notice kind="warning" title={`Reports cannot be verified: ${problem}`}>
      {advice} Until then, no alert about verification is triggered.
    </Notice>
  );
};

const NotificationState = () => {
  const { alerts } = useExplorer();
  const permission = alerts.permission.value;
  if (permission === 'granted') return <p class="small muted">Alerts are shown in the page and as notifications.</p>;
  if (permission === 'default')
    return (
      <Notice
        title="Alerts are shown in the page"
        action={
          <button type="button" onClick={() => void alerts.askPermission()}>
            Show notifications
          </button>
        }
      >
        To see them while you use another tab or program, allow notifications.
      </Notice>
    );
  return (
    <Notice title="Alerts are shown only in the page">
      {permission === 'denied'
        ? 'Notifications are blocked. Allow them for this site in the browser’s settings, then reload.'
        : 'This browser has no notifications here: they need https or localhost.'}
    </Notice>
  );
};

const StreamLink = ({ feedId }: { readonly feedId: string }) => {
  const { catalog } = useExplorer();
  const stream = catalog.find(feedId);
  return (
    <a href={streamHref(feedId)}>
      {stream === undefined ? 'Stream' : `${stream.baseAsset}/${stream.quoteAsset}`}{' '}
      <span class="small muted mono">{shortId(feedId)}</span>
    </a>
  );
};

const AlertList = ({ list, onEdit }: { readonly list: readonly Alert[]; readonly onEdit: (id: string) => void }) => (
  <section class="card" aria-labelledby="alert-list-title">
    <h2 id="alert-list-title">Your alerts</h2>
    {list.length === 0 ? (
      <p class="muted">No alerts yet. Add one above, or with “Add alert” on a stream’s page.</p>
    ) : (
      <ul class="alert-list">
        {list.map((alert) => (
          <AlertRow key={alert.id} alert={alert} onEdit={onEdit} />
        ))}
      </ul>
    )}
  </section>
);

/** What an alert does now. */
const AlertState = ({ alert: { rule, isPaused, isArmed, lastMs } }: { readonly alert: Alert }) => {
  if (isPaused)
    return <Pill>{rule.kind === 'price' && !rule.repeats && lastMs !== undefined ? 'done' : 'paused'}</Pill>;
  if (isArmed || rule.kind === 'unverified') return <Pill kind="ok">watching</Pill>;
  return rule.kind === 'price' ? (
    <Pill kind="accent" title="Triggers at the next crossing: first the price must be on the other side of the level.">
      waiting to cross
    </Pill>
  ) : (
    <Pill kind="accent" title="Triggers when reports stop again: first one must arrive.">
      waiting for a report
    </Pill>
  );
};

const AlertRow = ({ alert, onEdit }: { readonly alert: Alert; readonly onEdit: (id: string) => void }) => {
  const { alerts, catalog, live } = useExplorer();
  const state = catalog.state.value;
  const isUnreadable = state.phase === 'ready' && state.readable.size > 0 && !state.readable.has(alert.feedId);
  const name = ruleText(alert.rule, live.digits(alert.feedId).value, isRateStream(alert.feedId));
  return (
    <li class="alert-row">
      <div>
        <p>
          <StreamLink feedId={alert.feedId} />
        </p>
        <p>{name}</p>
        <p class="small muted row">
          <AlertState alert={alert} />
          {isUnreadable && <span class="warn">Your account may not read this stream.</span>}
          {alert.lastMs === undefined ? (
            'Not triggered yet'
          ) : (
            <span>
              Last triggered <Time ms={Math.floor(alert.lastMs / 1_000) * 1_000} />
            </span>
          )}
        </p>
      </div>
      <div class="row alert-acts">
        <button type="button" id={editId(alert.id)} aria-label={`Edit: ${name}`} onClick={() => onEdit(alert.id)}>
          Edit
        </button>
        <button
          type="button"
          aria-label={`${alert.isPaused ? 'Resume' : 'Pause'}: ${name}`}
          onClick={() => alerts.setPaused(alert.id, !alert.isPaused)}
        >
          {alert.isPaused ? 'Resume' : 'Pause'}
        </button>
        <button type="button" aria-label={`Delete: ${name}`} onClick={() => alerts.remove(alert.id)}>
          Delete
        </button>
      </div>
    </li>
  );
};

const AlertHistory = () => {
  const { alerts } = useExplorer();
  const history = alerts.history.value;
  return (
    <section class="card" aria-labelledby="alert-history-title">
      <div class="dialog-head">
        <h2 id="alert-history-title">History</h2>
        {history.length > 0 && (
          <button type="button" class="quiet" onClick={alerts.clearHistory}>
            Clear
          </button>
        )}
      </div>
      {history.length === 0 ? (
        <p class="muted">No alert was triggered yet.</p>
      ) : (
        <ol class="alert-list">
          {history.map(({ seq, feedId, text, atMs }) => (
            <li key={seq} class="alert-event">
              <Time ms={Math.floor(atMs / 1_000) * 1_000} />
              <StreamLink feedId={feedId} />
              <span>{text}</span>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
};
