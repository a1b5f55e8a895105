// Reports what a slow start waits for. It stops nothing: a large store or a slow database may need the time.
import { within } from './deadline.ts';

export type StartWatch = {
  /** Opens one part; until it is open, or has failed, the start waits for it. */
  readonly part: <T>(name: string, open: () => Promise<T>) => Promise<T>;
  /** The start is over, or has failed. */
  readonly end: () => void;
};

/** A start that takes longer than this says what it waits for, and again each time as long has passed. */
const slowStartMs = 20_000;

/** Watches a start that begins now; `say` gets one sentence at a time. */
export function watchStart(say: (text: string) => void, everyMs: number = slowStartMs): StartWatch {
  const startedMs = performance.now();
  const waiting = new Set<{ readonly name: string }>();
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - startedMs) / 1_000);
    const names = [...waiting].map(({ name }) => name).join(', ');
    say(`Still starting after ${seconds} s. Waiting for: ${names || 'nothing that is known'}.`);
  }, everyMs).unref();
  return {
    part: async (name, open) => {
      const entry = { name };
      waiting.add(entry);
      try {
        return await open();
      } finally {
        waiting.delete(entry);
      }
    },
    end: () => clearInterval(timer),
  };
}

/** For starts without a user at a terminal. */
export const unwatchedStart: StartWatch = { part: (_, open) => open(), end: () => {} };

const closeFailedMs = 5_000;

/** Closes what a failed start has opened. It gives up after 5 s and never rejects, so that the start's own error is reported. */
export async function closeFailedStart(close: () => Promise<void>): Promise<void> {
  await within(closeFailedMs, close()).catch(() => {});
}
