// The sandbox that the page is served by, if it is one: its time, which the clock then follows, and its faults.
import { type ReadonlySignal, signal } from '@preact/signals';
import { type BackoffRules, backOffMs, SealpostError } from '@sealpost/client';
import type { Body } from '@sealpost/protocol';
import type { Clock } from './clock.ts';
import type { Session } from './session.ts';

/** Undefined until it is known, and where the server is no sandbox. */
export type SandboxWatch = ReadonlySignal<Body<'SandboxStatus'> | undefined>;

const everyMs = 2_000;
const retryRules: BackoffRules = { minMs: 1_000, maxMs: 60_000 };

/** Asks until there is an answer, with back-off; of a sandbox again and again. While the page is hidden, only the first request is sent. */
export const watchSandbox = (
  { client }: Pick<Session, 'client'>,
  clock: Pick<Clock, 'runFrom'>,
  { document, setTimeout }: Pick<Window, 'document' | 'setTimeout'>,
): SandboxWatch => {
  const sandbox = signal<Body<'SandboxStatus'> | undefined>(undefined);
  let failures = 0;
  const look = async (): Promise<void> => {
    const read = await readStatus(client.peek());
    if (read === 'failed') failures += 1;
    else if (read !== undefined) {
      clock.runFrom(read.timeMs, read.paused ? 0 : read.speed);
      sandbox.value = read;
    }
    if (sandbox.peek() !== undefined) lookAfter(everyMs);
    else if (read === 'failed') lookAfter(backOffMs(retryRules, failures - 1, Math.random));
  };
  const lookAfter = (ms: number): void => {
    setTimeout(() => (document.hidden ? lookAfter(everyMs) : void look()), ms);
  };
  void look();
  return sandbox;
};

type StatusClient = ReturnType<Session['client']['peek']>;

const readStatus = async (client: StatusClient): Promise<Body<'SandboxStatus'> | undefined | 'failed'> =>
  client.status().then(
    ({ status }) => status.sandbox,
    // A fault of the sandbox may be the reason; a server without this route is no sandbox.
    (error: unknown) => (error instanceof SealpostError && error.code === 'not_supported' ? undefined : 'failed'),
  );
