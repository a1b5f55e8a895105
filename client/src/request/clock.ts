// The server's time: this machine's clock, corrected when a server rejects it.
import type { SealpostError } from '../errors.ts';

/** When a request was signed, by this machine's clock, and the correction that was added. */
export type ClockReading = { readonly machineMs: number; readonly offsetMs: number };

/** A correction of the clock; the request is signed once more with it. */
export type Correction = {
  /** False if another call has corrected the clock meanwhile. */
  readonly isNew: boolean;
  /** Reverts a correction that did not help; undefined if the server itself said that the clock is wrong. */
  readonly undo: (() => void) | undefined;
};

export type Clock = {
  readonly now: () => ClockReading;
  /** Corrects the clock by the error of a request that was signed at `signed`; undefined if the error is not about the clock. */
  readonly correct: (refusal: SealpostError, signed: ClockReading) => Correction | undefined;
};

/** A Date header has whole seconds; a larger difference means that the clocks differ. */
const dateSkewMinMs = 2_000;

/** Whether an error without a code may be about the clock, by the server's Date header; `signedMs` is when the request was signed. */
export const isSkewedByDate = ({ status, details: { serverDateMs } }: SealpostError, signedMs: number): boolean =>
  (status === 400 || status === 401) &&
  typeof serverDateMs === 'number' &&
  Math.abs(serverDateMs + 500 - signedMs) >= dateSkewMinMs;

/** Starts with this machine's clock as it is. */
export function createClock(machineMs: () => number): Clock {
  let offsetMs = 0;
  // Assumes that the server read its clock halfway between request and response: off by at most half of the round trip.
  const offsetTo = (serverMs: number, signed: ClockReading): number =>
    Math.round(serverMs - (signed.machineMs + machineMs()) / 2);
  return {
    now: () => ({ machineMs: machineMs(), offsetMs }),
    correct: (refusal, signed) => {
      const { code, details } = refusal;
      const hasServerTime = code === 'clock_skew' && Number.isSafeInteger(details.serverTimeMs);
      if (!hasServerTime && !isSkewedByDate(refusal, signed.machineMs + signed.offsetMs)) return undefined;
      if (offsetMs !== signed.offsetMs) return { isNew: false, undo: undefined };
      const serverMs = hasServerTime ? (details.serverTimeMs as number) : (details.serverDateMs as number) + 500; // each was checked above
      const corrected = offsetTo(serverMs, signed);
      offsetMs = corrected;
      const undo = (): void => {
        if (offsetMs === corrected) offsetMs = signed.offsetMs;
      };
      return { isNew: true, undo: hasServerTime ? undefined : undo };
    },
  };
}
