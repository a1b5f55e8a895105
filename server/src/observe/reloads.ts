// Remembers whether accounts, streams and signers could be read again after their last change.
import type { AdminView } from '../store/admin-snapshot.ts';
import type { Listener } from './observe.ts';

export type ReloadWatch = {
  readonly observe: Listener;
  /** Ends the trouble at the next reload that works. */
  readonly follow: (view: Pick<AdminView, 'onReload'>) => void;
  /** What is wrong now, for the probe. */
  readonly describe: () => readonly string[];
};

/** `onChange` is called whenever `describe` has something else to say. */
export const watchReloads = (onChange: () => void = () => {}): ReloadWatch => {
  let reasons: readonly string[] = [];
  const set = (now: readonly string[]): void => {
    const isSame = now[0] === reasons[0];
    reasons = now;
    if (!isSame) onChange();
  };
  return {
    observe: (observation) => {
      if (observation.kind !== 'adminReloadFailed') return;
      const { error } = observation;
      const why = error instanceof Error ? error.message : String(error);
      set([`accounts, streams and signers are those from before their last change, which cannot be read: ${why}`]);
    },
    follow: (view) => void view.onReload(() => set([])),
    describe: () => reasons,
  };
};
