// The composition root of the page: creates each part of the state once and passes it to the components. base.css comes first, so that
// the styles of pages override it.
import './styles/base.css';
import { render } from 'preact';
import { App } from './app.tsx';
import { createPages } from './pages.tsx';
import { createAlerts } from './state/alerts/alerts.ts';
import { createClock } from './state/clock.ts';
import { createChunks } from './state/code/chunks.ts';
import { createDays } from './state/days.ts';
import { ExplorerContext } from './state/explorer.ts';
import { keepFocus } from './state/focus.ts';
import { createLive } from './state/live-prices.ts';
import { createRouter, straightenAddress } from './state/router.ts';
import { watchServer } from './state/sandbox.ts';
import { createSession } from './state/session.ts';
import { createBrowserStorage } from './state/settings/browser-storage.ts';
import { createListColumns } from './state/settings/list-columns.ts';
import { createStoredSetting } from './state/settings/stored-setting.ts';
import { createTimes } from './state/settings/times.ts';
import { createWatchlist } from './state/settings/watchlist.ts';
import { createShortcuts } from './state/shortcuts.ts';
import { createSignIn } from './state/sign-in.ts';
import { watchUnexpected } from './state/unexpected.ts';
import { createCatalog } from './state/user-catalog.ts';
import { Boundary } from './ui/frame/boundary.tsx';
import { createTheme } from './ui/theme.ts';

const unexpected = watchUnexpected(window);
straightenAddress(window);
const chunks = createChunks(window);
const storage = createBrowserStorage(window);
const theme = createTheme(window, storage);
const times = createTimes(storage);
const sampleLanguage = createStoredSetting(storage, 'sealpost-sample-language', (stored) =>
  typeof stored === 'string' ? stored.slice(0, 20) : '',
);
const shortcuts = createShortcuts(document, storage);
shortcuts.add({
  title: 'On all pages',
  shortcuts: [
    { keys: ['?'], text: 'List the keyboard shortcuts', run: shortcuts.openList },
    { keys: ['t'], text: 'Switch between UTC and local time', run: times.toggle },
    { keys: ['Escape'], text: 'Close a dialog, menu or panel' },
  ],
});
const clock = createClock(window);
const session = createSession(window);
clock.follow(async () => (await session.client.peek().time()).serverTimeMs);
const { sandbox, historyLoaded, historyShown } = watchServer(session, clock, window);
const signIn = createSignIn();
const router = createRouter(window);
const catalog = createCatalog(session);
const live = createLive(session, catalog, clock);
const days = createDays(session, clock);
const watchlist = createWatchlist(storage);
const listColumns = createListColumns(storage);

const alerts = createAlerts({ window, session, catalog, live, clock, chunks, storage, sandbox });

const root = document.getElementById('app');
if (root !== null) {
  root.replaceChildren(); // what index.html says until now
  keepFocus(document, root);
  render(
    <ExplorerContext.Provider
      value={{
        session,
        router,
        storage,
        chunks,
        clock,
        catalog,
        live,
        days,
        watchlist,
        listColumns,
        theme,
        times,
        shortcuts,
        sampleLanguage,
        unexpected,
        alerts,
        sandbox,
        historyLoaded,
        historyShown,
        signIn,
      }}
    >
      <Boundary of="frame">
        <App code={createPages(chunks)} />
      </Boundary>
    </ExplorerContext.Provider>,
    root,
  );
}
