// The frame around every page: the header, the footer, and the announcements between them.
import { effect } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { type ExplorerPages, Page, usePreloading } from './pages.tsx';
import { useExplorer } from './state/explorer.ts';
import type { PageRoute } from './state/router.ts';
import { explainError } from './state/session.ts';
import { Loading, Notice } from './ui/components.tsx';
import { Account } from './ui/frame/account.tsx';
import { Boundary } from './ui/frame/boundary.tsx';
import { HistoryBanner } from './ui/frame/history-banner.tsx';
import { SandboxBanner } from './ui/frame/sandbox-banner.tsx';
import { ShortcutsButton, ShortcutsDialog } from './ui/frame/shortcuts-dialog.tsx';
import { Toasts } from './ui/frame/toasts.tsx';
import { UnsavedNotice } from './ui/frame/unsaved-notice.tsx';
import { SignInButton, SignInDialog } from './ui/sign-in-dialog.tsx';
import './styles/app.css';

type PageLink = {
  readonly href: string;
  readonly text: string;
  /** More of the text, where there is space. */
  readonly rest?: string;
  readonly pages: readonly PageRoute['page'][];
};

const links: readonly PageLink[] = [
  { href: '/', text: 'Streams', pages: ['catalog', 'stream', 'report'] },
  { href: '/inspect', text: 'Inspect', rest: 'a report', pages: ['inspect'] },
  { href: '/status', text: 'Status', pages: ['status'] },
  { href: '/alerts', text: 'Alerts', pages: ['alerts'] },
  { href: '/docs', text: 'API docs', pages: ['docs'] },
];

const Seal = () => (
  <svg class="seal" width="24" height="24" viewBox="0 0 32 32" aria-hidden="true">
    <path d="m16 1 3.6 2.5 4.3-.5 1.9 4 3.9 1.9-.4 4.300L32 16l-2.7 2.8.4 4.3-3.9 1.9-1.9 4-4.3-.5L16 31l-3.6-2.5-4.3.5-1.9-4-3.9-1.9.4-4.300L0 16l2.7-2.8-.4-4.300L6.2 7l1.9-4 4.3.5z" />
    <path class="seal-mark" d="m10 16.5 4.2 4.2 8.3-8.7" />
  </svg>
);

const ThemeButton = () => {
  const { theme } = useExplorer();
  const isDark = theme.scheme.value === 'dark';
  const label = `Switch to the ${isDark ? 'light' : 'dark'} theme`;
  return (
    <button type="button" class="icon-button quiet" aria-label={label} title={label} onClick={theme.toggle}>
      <svg
        width="20"
        height="20"
        viewBox="0 0 20 20"
        fill="none"
        stroke="currentColor"
        stroke-width="1.6"
        stroke-linecap="round"
        aria-hidden="true"
      >
        {isDark ? (
          <path d="M10 6.500a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7ZM10 1.500v2M10 16.500v2M1.5 10h2M16.5 10h2M4 4l1.4 1.400M14.6 14.6 16 16M4 16l1.4-1.400M14.6 5.4 16 4" />
        ) : (
          <path d="M16.5 12A7 7 0 0 1 8 3.500a7 7 0 1 0 8.5 8.500Z" />
        )}
      </svg>
    </button>
  );
};

/** One switch for the times on all pages. */
const ZoneButton = () => {
  const { times, shortcuts } = useExplorer();
  const isLocal = times.zone.value === 'local';
  const label = isLocal ? 'Times are local. Switch to UTC' : 'Times are in UTC. Switch to local time';
  return (
    <button
      type="button"
      class="quiet zone-button"
      aria-label={label}
      title={shortcuts.areLettersOn.value ? `${label} (T)` : label}
      onClick={times.toggle}
    >
      {isLocal ? 'Local' : 'UTC'}
    </button>
  );
};

const Header = ({ route }: { readonly route: PageRoute }) => (
  <header class="site-header">
    <div class="site-bar">
      <a class="brand" href="/" aria-label="Sealpost, all streams">
        <Seal />
        <span class="brand-name">Sealpost</span>
      </a>
      <nav class="site-nav" aria-label="Pages">
        {links.map(({ href, text, rest, pages }) => (
          <a key={href} href={href} aria-current={pages.some((page) => page === route.page) ? 'page' : undefined}>
            <span>
              {text}
              {rest !== undefined && <span class="wide-word"> {rest}</span>}
            </span>
          </a>
        ))}
      </nav>
      <div class="site-acts">
        <ZoneButton />
        <ThemeButton />
        <Account />
      </div>
    </div>
  </header>
);

/** The server's release; undefined until it is known, or if it cannot be read. */
const useVersion = (): string | undefined => {
  const { session } = useExplorer();
  const [version, setVersion] = useState<string | undefined>(undefined);
  useEffect(() => {
    session.client
      .peek()
      .status()
      .then(({ status }) => setVersion(status.version))
      .catch(() => {});
  }, [session]);
  return version;
};

const Footer = () => {
  const version = useVersion();
  return (
    <footer class="site-footer">
      <div class="site-foot">
        <ShortcutsButton />
        <p>Sealpost{version === undefined ? '' : ` ${version}`} · Apache-2.0</p>
        <p>
          Charts by{' '}
          <a href="https://www.tradingview.com/" target="_blank" rel="noopener noreferrer">
            TradingView Lightweight Charts
          </a>
        </p>
      </div>
    </footer>
  );
};

/** Whether the browser is online. */
const useOnline = (): boolean => {
  const [isOnline, setOnline] = useState(navigator.onLine);
  useEffect(() => {
    const read = (): void => setOnline(navigator.onLine);
    window.addEventListener('online', read);
    window.addEventListener('offline', read);
    return () => {
      window.removeEventListener('online', read);
      window.removeEventListener('offline', read);
    };
  }, []);
  return isOnline;
};

/** A sign-in link must not replace the signed-in account without asking. */
const SwitchQuestion = () => {
  const { session } = useExplorer();
  return (
    <Notice
      kind="warning"
      title="Switch to the link’s account?"
      action={
        <div class="row">
          <button type="button" onClick={() => session.decideSwitch(true)}>
            Switch account
          </button>
          <button type="button" class="quiet" onClick={() => session.decideSwitch(false)}>
            Stay signed in
          </button>
        </div>
      }
    >
      You opened a sign-in link, but you are signed in as {session.userId.value}.
    </Notice>
  );
};

const UnexpectedNotice = () => {
  const { unexpected } = useExplorer();
  return (
    <Notice
      kind="error"
      title="Something went wrong on this page."
      action={
        <div class="row">
          <button type="button" onClick={() => window.location.reload()}>
            Reload
          </button>
          <button type="button" class="quiet" onClick={unexpected.dismiss}>
            Dismiss
          </button>
        </div>
      }
    >
      What you see may be incomplete or out of date. Reload the page.
    </Notice>
  );
};

const Announcements = () => {
  const { session, unexpected, storage } = useExplorer();
  const isOnline = useOnline();
  const refusal = session.refusal.value;
  const isSwitchOffered = session.isSwitchOffered.value;
  const isBroken = unexpected.error.value !== undefined;
  const storageRefusal = storage.refusal.value;
  if (isOnline && refusal === undefined && !isSwitchOffered && !isBroken && storageRefusal === undefined) return null;
  const { problem, advice } = explainError(refusal);
  return (
    <div class="page announcements stack">
      {!isOnline && (
        <Notice kind="warning" title="You are offline">
          This page is not updating. Live prices resume when you are back online.
        </Notice>
      )}
      {isBroken && <UnexpectedNotice />}
      {isSwitchOffered && <SwitchQuestion />}
      {storageRefusal !== undefined && <UnsavedNotice why={storageRefusal} />}
      {refusal !== undefined && (
        <Notice
          kind="error"
          title={`${session.userId.value === undefined ? 'You are not signed in' : 'The link did not sign you in'}: ${problem}`}
          action={
            <div class="row">
              {session.userId.value === undefined && <SignInButton>Sign in with a secret</SignInButton>}
              <button type="button" class="quiet" onClick={session.dismissRefusal}>
                Dismiss
              </button>
            </div>
          }
        >
          {advice}
        </Notice>
      )}
    </div>
  );
};

/** Moves the focus to a new page, so that screen readers start at its top. */
const useFocusOnPage = () => {
  const { router } = useExplorer();
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    let lastRoute = JSON.stringify(router.address.peek().route);
    return effect(() => {
      const next = JSON.stringify(router.address.value.route);
      if (next !== lastRoute) main.current?.focus({ preventScroll: true });
      lastRoute = next;
    });
  }, [router]);
  return main;
};

export function App({ code }: { readonly code: ExplorerPages }) {
  usePreloading(code);
  const { router, session, sandbox, historyShown } = useExplorer();
  const main = useFocusOnPage();
  const { route } = router.address.value;
  const [updates, setUpdates] = useState(0);
  const update = () => {
    historyShown();
    setUpdates(updates + 1);
  };
  // What a page read for another time is read again.
  const version = `${sandbox.value === undefined ? 'clock' : 'sandbox'} ${updates}`;
  return (
    <>
      <a class="skip-link" href="#main">
        Skip to content
      </a>
      <SandboxBanner />
      <HistoryBanner update={update} />
      <Header route={route} />
      <Announcements />
      <main id="main" class="page" tabIndex={-1} ref={main}>
        <Boundary of={JSON.stringify(route)}>
          {session.isPending.value ? (
            <Loading label="Signing in" lines={6} />
          ) : (
            <Page key={version} route={route} code={code} />
          )}
        </Boundary>
      </main>
      <Footer />
      <Toasts />
      <SignInDialog />
      <ShortcutsDialog />
    </>
  );
}
