// Detects that the process has no file descriptor left. No supported Node release reports it: connections are closed on accept, or stay in the
// backlog.
import { close, open } from 'node:fs';

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
export const watchDescriptors = (
  observe: (event: NoDescriptors) => void,
  onChange: () => void = () => {},
): DescriptorWatch => {
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
};
