// How many connections the file descriptors of the process allow, and whether it has none left. No supported Node release reports the latter:
// connections are closed on accept, or stay in the backlog.
import { close, open, readdirSync, readFileSync } from 'node:fs';

/** Shares of the descriptors that are free at the start. The rest is for files, and connections to a database. */
const shares = { public: 3 / 4, private: 1 / 8 } as const;

/** What a listener may have open of `max` connections, and the limit of the process; both without a bound where none can be read, as outside Linux. */
export function connectionsWithin(max: number, listener: keyof typeof shares): { max: number; limit: number } {
  const limit = descriptorsMax();
  if (limit === Number.POSITIVE_INFINITY) return { max, limit };
  const free = limit - readdirSync('/proc/self/fd').length;
  return { max: Math.max(1, Math.min(max, Math.floor(free * shares[listener]))), limit };
}

const descriptorsMax = (): number => {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
};

const lookEveryMs = 1_000;
const reason = 'no file descriptors are left, so new connections are not served; raise the limit (ulimit -n)';

export type DescriptorWatch = {
  /** What is wrong now, for the probe. */
  readonly describe: () => readonly string[];
  readonly stop: () => void;
};

type NoDescriptors = {
  readonly kind: 'warning';
  readonly code: 'no_descriptors';
  readonly message: string;
  readonly error: unknown;
};

/** Opens a descriptor every second. The first failure is logged; `onChange` is called whenever `describe` has something else to say. */
export function watchDescriptors(
  observe: (event: NoDescriptors) => void,
  onChange: () => void = () => {},
): DescriptorWatch {
  let [isOut, isLooking] = [false, false];
  const look = (): void => {
    if (isLooking) return; // the threads of node:fs may all wait for a disk
    isLooking = true;
    open('/dev/null', 'r', (error, descriptor) => {
      isLooking = false;
      if (error === null) close(descriptor, () => {});
      const failed = error !== null && (error.code === 'EMFILE' || error.code === 'ENFILE');
      if (failed === isOut) return;
      isOut = failed;
      if (isOut) observe({ kind: 'warning', code: 'no_descriptors', message: `In this process ${reason}.`, error });
      onChange();
    });
  };
  const timer = setInterval(look, lookEveryMs).unref();
  return { describe: () => (isOut ? [reason] : []), stop: () => clearInterval(timer) };
}
