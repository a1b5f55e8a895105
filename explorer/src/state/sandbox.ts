// Whether the page is served by a sandbox or by a demo that loads its history: the time of a sandbox, which the clock then follows, its faults, and how much
// history is there.
import { type ReadonlySignal, signal } from '@preact/signals';
import { type BackoffRules, backOffMs, SealpostError } from '@sealpost/client';
import type { Body } from '@sealpost/protocol';
import type { Clock } from './clock.ts';
import type { Session } from './session.ts';

/** Undefined until it is known, and where the server is no sandbox. */
export type SandboxWatch = ReadonlySignal<Body<'SandboxStatus'> | undefined>;

export type ServerWatch = {
  readonly sandbox: SandboxWatch;
  /** From 0 to 1, which a page that was opened before then keeps until `historyShown`; undefined on other pages, and where the server is no demo. */
  readonly historyLoaded: ReadonlySignal<number | undefined>;
  /** The page was read again since all of it is there. */
  readonly historyShown: () => void;
};

const everyMs = 2_000;
const retryRules: BackoffRules = { minMs: 1_000, maxMs: 60_000 };

/** Asks until there is an answer, with back-off; then again and again where there is something to follow. While the page is hidden, only the first request is sent. */
export function watchServer(
  { client }: Pick<Session, 'client'>,
  clock: Pick<Clock, 'runFrom'>,
  { document, setTimeout }: Pick<Window, 'document' | 'setTimeout'>,
): ServerWatch {
  const historyLoaded = signal<number | undefined>(undefined);
  const sandbox = signal<Body<'SandboxStatus'> | undefined>(undefined);
  let failures = 0;
  const look = async (): Promise<void> => {
    const read = await readStatus(client.peek());
    if (read === 'failed') failures += 1;
    else {
      historyLoaded.value = read?.historyLoaded ?? (historyLoaded.peek() === undefined ? undefined : 1);
      if (read?.sandbox !== undefined) {
        const { timeMs, paused, speed } = read.sandbox;
        clock.runFrom(timeMs, paused ? 0 : speed);
        sandbox.value = read.sandbox;
      }
    }
    if (sandbox.peek() !== undefined || (historyLoaded.peek() ?? 1) < 1) lookAfter(everyMs);
    else if (read === 'failed') lookAfter(backOffMs(retryRules, failures - 1, Math.random));
  };
  const lookAfter = (ms: number): void => {
    setTimeout(() => (document.hidden ? lookAfter(everyMs) : void look()), ms);
  };
  void look();
  return {
    sandbox,
    historyLoaded,
    historyShown: () => {
      historyLoaded.value = undefined;
    },
  };
}

type StatusClient = ReturnType<Session['client']['peek']>;

const readStatus = async (client: StatusClient): Promise<Body<'Status'> | undefined | 'failed'> =>
  client.status().then(
    ({ status }) => status,
    // A fault of the sandbox may be the reason; a server without this route is no sandbox.
    (error: unknown) => (error instanceof SealpostError && error.code === 'not_supported' ? undefined : 'failed'),
  );
