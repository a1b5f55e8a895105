// Verifies reports of alerted streams in the background: one at a time, the newest of each stream.
import type { SignerSetsJson } from '@sealpost/protocol';
import type { Chunks } from '../code/chunks.ts';
import type { LiveReport } from '../live-prices.ts';
import type { Session } from '../session.ts';

/** How long signer sets are used; they change when signers rotate. */
const signersMaxMs = 60_000;

export type Refusals = { readonly check: (report: LiveReport) => void; readonly close: () => void };

export type RefusalParts = {
  readonly session: Pick<Session, 'client'>;
  readonly chunks: Chunks;
  /** Called for each report that fails verification. What cannot be judged, such as an unknown signer set, is no failure. */
  readonly onRefused: (report: LiveReport) => void;
  /** Called with why a report could not be verified, and with undefined once one was. */
  readonly onProblem: (error: unknown) => void;
};

export function createRefusals({ session, chunks, onRefused, onProblem }: RefusalParts): Refusals {
  const waiting = new Map<string, LiveReport>();
  let signers: { readonly sets: SignerSetsJson; readonly readMs: number } | undefined;
  let isRunning = false;
  let isClosed = false;
  const verify = async (next: LiveReport): Promise<void> => {
    const [{ proveReport }, { readReport }] = await chunks.load(() =>
      Promise.all([import('../../ui/report/proof.ts'), import('../../ui/report/reading.ts')]),
    );
    if (signers === undefined || performance.now() - signers.readMs > signersMaxMs)
      signers = { sets: (await session.client.peek().signers()).signers, readMs: performance.now() };
    const { full, window } = readReport(next.report.fullReport);
    const proof = proveReport(full, signers.sets, next.report, window);
    if (isClosed) return;
    onProblem(undefined);
    if (!proof.ok && proof.kind !== 'unknown_config_digest') onRefused(next);
  };
  const run = async (): Promise<void> => {
    if (isRunning) return;
    isRunning = true;
    for (
      let next = waiting.values().next().value;
      next !== undefined && !isClosed;
      next = waiting.values().next().value
    ) {
      waiting.delete(next.report.feedID);
      // Offline, signed out, or without the code: the next report is checked.
      await verify(next).catch((error: unknown) => {
        if (!isClosed) onProblem(error);
      });
      await new Promise((resolve) => setTimeout(resolve, 0)); // between two, the page can draw
    }
    isRunning = false;
  };
  return {
    check: (report) => {
      waiting.set(report.report.feedID, report);
      void run();
    },
    close: () => {
      isClosed = true;
      waiting.clear();
    },
  };
}
