// The context of every page: the parts that main.tsx creates once.
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Theme } from '../ui/theme.ts';
import type { Alerts } from './alerts/alerts.ts';
import type { Clock } from './clock.ts';
import type { Chunks } from './code/chunks.ts';
import type { Days } from './days.ts';
import type { Live } from './live-prices.ts';
import type { Router } from './router.ts';
import type { ServerWatch } from './sandbox.ts';
import type { Session } from './session.ts';
import type { BrowserStorage } from './settings/browser-storage.ts';
import type { ListColumns } from './settings/list-columns.ts';
import type { StoredSetting } from './settings/stored-setting.ts';
import type { Times } from './settings/times.ts';
import type { Watchlist } from './settings/watchlist.ts';
import type { Shortcuts } from './shortcuts.ts';
import type { SignIn } from './sign-in.ts';
import type { Unexpected } from './unexpected.ts';
import type { Catalog } from './user-catalog.ts';

export type Explorer = {
  readonly session: Session;
  readonly router: Router;
  /** Says so when the browser does not keep what the user chose. */
  readonly storage: BrowserStorage;
  /** Loads code on demand: `chunks.load(() => import('./part.ts'))`. */
  readonly chunks: Chunks;
  readonly clock: Clock;
  readonly catalog: Catalog;
  readonly live: Live;
  readonly days: Days;
  readonly watchlist: Watchlist;
  readonly listColumns: ListColumns;
  readonly theme: Theme;
  /** Formats times in the zone that the user chose. */
  readonly times: Times;
  /** Register with `useShortcuts` (ui/shortcuts.ts). */
  readonly shortcuts: Shortcuts;
  /** The language of programs to copy (ui/code-samples.ts); any text, because the browser may hold anything. */
  readonly sampleLanguage: StoredSetting<string>;
  readonly alerts: Alerts;
  readonly sandbox: ServerWatch['sandbox'];
  readonly historyLoaded: ServerWatch['historyLoaded'];
  readonly historyShown: ServerWatch['historyShown'];
  readonly unexpected: Unexpected;
  /** The sign-in dialog; any page may open it, for example with `<SignInButton />`. */
  readonly signIn: SignIn;
};

export const ExplorerContext = createContext<Explorer | undefined>(undefined);

/** The parts of the explorer, in any component. */
export function useExplorer(): Explorer {
  const explorer = useContext(ExplorerContext);
  if (explorer === undefined) throw new Error('The component is outside of the explorer.');
  return explorer;
}
