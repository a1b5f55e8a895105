// The sandbox that the page is served by, if it is one: its time, which the clock then follows, and its faults.
import { type ReadonlySignal, signal } from '@preact/signals';
import type { Body } from '@sealpost/protocol';
import type { Clock } from './clock.ts';
import type { Session } from './session.ts';

/** Undefined until it is known, and where the server is no sandbox. */
export type SandboxWatch = ReadonlySignal<Body<'SandboxStatus'> | undefined>;

const everyMs = 2_000;

/** Asks once; of a sandbox again and again, while the page is visible. */
export const watchSandbox = (
  { client }: Pick<Session, 'client'>,
  clock: Pick<Clock, 'runFrom'>,
  { document, setTimeout }: Pick<Window, 'document' | 'setTimeout'>,
): SandboxWatch => {
  const sandbox = signal<Body<'SandboxStatus'> | undefined>(undefined);
  const look = async (): Promise<void> => {
    const read = document.hidden && sandbox.peek() !== undefined ? undefined : await readStatus(client.peek());
    if (read !== undefined) {
      clock.runFrom(read.timeMs, read.paused ? 0 : read.speed);
      sandbox.value = read;
    }
    if (sandbox.peek() !== undefined) setTimeout(() => void look(), everyMs);
  };
  void look();
  return sandbox;
};

type StatusClient = ReturnType<Session['client']['peek']>;

const readStatus = async (client: StatusClient): Promise<Body<'SandboxStatus'> | undefined> =>
  client.status().then(
    ({ status }) => status.sandbox,
    () => undefined, // a fault of the sandbox may be the reason
  );
