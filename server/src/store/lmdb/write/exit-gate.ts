// Lets a process exit only between the acts of a thread that calls a native addon. Node ends all threads when a process exits, wherever they are: one that is
// loading the addon aborts the process, and one that is inside a transaction of LMDB waits for a lock of its own, forever (D202).

/** Shared with the thread. */
export type ExitGate = Int32Array<SharedArrayBuffer>;

const idle = 0;
const busy = 1;
const ending = 2;

/** A commit takes milliseconds, on a very slow disk seconds. */
const waitMaxMs = 5_000;

export type ExitWatch = {
  readonly gate: ExitGate;
  /** The thread has ended, or was never started. */
  readonly over: () => void;
};

/** Waits of this process's threads. One listener for all: Node warns of more than ten. */
const waits = new Set<() => void>();
const waitForAll = (): void => {
  for (const wait of waits) wait();
};

/**
 * Begins for a thread that is about to start, and counts as acting. When this process exits, it waits until the thread has finished its act, and lets it begin no
 * other. A thread that does not finish in time cannot be ended in order: the process then ends by SIGKILL.
 */
export function watchExit(kill: () => void = () => process.kill(process.pid, 'SIGKILL'), maxMs = waitMaxMs): ExitWatch {
  const gate: ExitGate = new Int32Array(new SharedArrayBuffer(4));
  Atomics.store(gate, 0, busy);
  const onExit = (): void => {
    const endMs = performance.now() + maxMs;
    while (Atomics.compareExchange(gate, 0, idle, ending) === busy) {
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) {
        kill();
        return;
      }
      Atomics.wait(gate, 0, busy, leftMs);
    }
  };
  if (waits.size === 0) process.on('exit', waitForAll);
  waits.add(onExit);
  const over = (): void => {
    waits.delete(onExit);
    if (waits.size === 0) process.off('exit', waitForAll);
  };
  return { gate, over };
}

export type EnteredGate = {
  /** Does what calls the addon; returns its result. */
  readonly act: <T>(act: () => T) => T;
  /** The first act, loading and opening, is over. */
  readonly leave: () => void;
};

/** The thread's side. Everything that calls the addon from then on goes through `act`. */
export function enterGate(gate: ExitGate): EnteredGate {
  const leave = (): void => {
    Atomics.compareExchange(gate, 0, busy, idle);
    Atomics.notify(gate, 0);
  };
  process.once('exit', leave); // of this thread, which has failed perhaps
  return {
    leave,
    act: (act) => {
      // The process exits: this thread is ended here, where it does nothing.
      if (Atomics.compareExchange(gate, 0, idle, busy) === ending) Atomics.wait(gate, 0, ending);
      try {
        return act();
      } finally {
        leave();
      }
    },
  };
}
