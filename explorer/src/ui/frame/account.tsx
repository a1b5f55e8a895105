// The account menu in the header: user ID, remaining rate limits, sign-out.
import { useEffect, useRef } from 'preact/hooks';
import { useExplorer } from '../../state/explorer.ts';
import { type RateLimit, remainingNow, tightestOf } from '../../state/rate-limits.ts';
import { Copy } from '../components.tsx';
import { SignInButton } from '../sign-in-dialog.tsx';

export function Account() {
  const { session } = useExplorer();
  const userId = session.userId.value;
  if (session.isPending.value) return <span class="muted small">Signing in…</span>;
  return userId === undefined ? <SignInButton primary /> : <AccountMenu userId={userId} />;
}

const Meter = ({ limit, nowMs }: { readonly limit: RateLimit; readonly nowMs: number }) => {
  const left = remainingNow(limit, nowMs);
  const text = `${left} of ${limit.limit} requests left this second`;
  return (
    <meter
      min={0}
      max={limit.limit}
      low={limit.limit * 0.25}
      optimum={limit.limit}
      value={left}
      title={text}
      aria-label={text}
    />
  );
};

const locationTexts = {
  page: 'This browser blocks storage: you’ll be signed out when you reload.',
  tab: 'You stay signed in until you close this tab. Tabs that you open from it are signed in too.',
  device: 'This device remembers you until you sign out.',
} as const;

const AccountMenu = ({ userId }: { readonly userId: string }) => {
  const { session, clock } = useExplorer();
  const menu = useRef<HTMLDetailsElement>(null);
  useClosing(menu);
  clock.nowMs.value; // renders again as the limits refill
  const limits = session.rateLimits.value;
  const tightest = tightestOf(limits, Date.now());
  return (
    <details class="account" ref={menu}>
      <summary class="button">
        <span class="unseen">Your account </span>
        <span class="mono">{userId.slice(0, 8)}</span>
        {tightest !== undefined && <Meter limit={tightest} nowMs={Date.now()} />}
      </summary>
      <div class="account-panel card stack">
        <div>
          <p class="small muted">Signed in as</p>
          <p class="row">
            <code>{userId}</code>
            <Copy text={userId} label="Copy user ID" />
          </p>
        </div>
        <RateLimits limits={limits} />
        <p class="small muted">{locationTexts[session.credentialLocation.value]}</p>
        <button type="button" onClick={session.signOut}>
          Sign out
        </button>
      </div>
    </details>
  );
};

const RateLimits = ({ limits }: { readonly limits: readonly RateLimit[] }) =>
  limits.length === 0 ? (
    <p class="small muted">No rate limits known yet.</p>
  ) : (
    <table class="small">
      <caption class="unseen">Rate limits by route</caption>
      <thead>
        <tr>
          <th scope="col">Route</th>
          <th scope="col" class="number">
            Left this second
          </th>
        </tr>
      </thead>
      <tbody>
        {limits.map((limit) => (
          <tr key={limit.path}>
            <td class="mono">{limit.path.replace(/^\/api\/v[0-9]+/, '')}</td>
            <td class="number">
              {remainingNow(limit, Date.now())} / {limit.limit}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );

/** An open menu closes on Escape, and on a click elsewhere. */
const useClosing = (menu: { readonly current: HTMLDetailsElement | null }): void => {
  useEffect(() => {
    const close = (event: Event): void => {
      const details = menu.current;
      if (details === null || !details.open) return;
      const isEscape = event instanceof KeyboardEvent && event.key === 'Escape';
      const isElsewhere = event.type === 'click' && !details.contains(event.target as Node); // what is clicked is a node
      if (!isEscape && !isElsewhere) return;
      details.open = false;
      if (isEscape) details.querySelector('summary')?.focus();
    };
    document.addEventListener('click', close);
    document.addEventListener('keydown', close);
    return () => {
      document.removeEventListener('click', close);
      document.removeEventListener('keydown', close);
    };
  }, [menu]);
};
