// The server's time as the client knows it: this machine's clock, corrected when a server rejects it.
import type { SealpostError } from '../errors.ts';

/** When a request was signed, by this machine's clock, and the correction that it was signed with. */
export type ClockReading = { readonly machineMs: number; readonly offsetMs: number };

/** A correction of the clock, to be tried by signing once more. */
export type Correction = {
  /** False: another call had corrected it meanwhile. */
  readonly isNew: boolean;
  /** Takes a correction back that did not help; undefined where the server itself said that the clock is wrong. */
  readonly undo: (() => void) | undefined;
};

export type Clock = {
  readonly now: () => ClockReading;
  /** Reads a refusal of a request that was signed at `signed`; undefined: it is about something else. */
  readonly correct: (refusal: SealpostError, signed: ClockReading) => Correction | undefined;
};

/** A Date header has whole seconds; a difference from here on is one of the clocks. */
const dateSkewMinMs = 2_000;

/** True where a refusal without a code may be about the clock, by the server's Date header; `signedMs` is when it was signed. */
export const isSkewedByDate = ({ status, details: { serverDateMs } }: SealpostError, signedMs: number): boolean =>
  (status === 400 || status === 401) &&
  typeof serverDateMs === 'number' &&
  Math.abs(serverDateMs + 500 - signedMs) >= dateSkewMinMs;

/** Starts with this machine's clock as it is. */
export const createClock = (machineMs: () => number): Clock => {
  let offsetMs = 0;
  // The server looked at its clock somewhere between request and answer: half-way is off by half the way at most.
  const offsetTo = (serverMs: number, signed: ClockReading): number =>
    Math.round(serverMs - (signed.machineMs + machineMs()) / 2);
  return {
    now: () => ({ machineMs: machineMs(), offsetMs }),
    correct: (refusal, signed) => {
      const { code, details } = refusal;
      const isTold = code === 'clock_skew' && Number.isSafeInteger(details.serverTimeMs);
      if (!isTold && !isSkewedByDate(refusal, signed.machineMs + signed.offsetMs)) return undefined;
      if (offsetMs !== signed.offsetMs) return { isNew: false, undo: undefined };
      const serverMs = isTold ? (details.serverTimeMs as number) : (details.serverDateMs as number) + 500; // each was checked above
      const corrected = offsetTo(serverMs, signed);
      offsetMs = corrected;
      const undo = (): void => {
        if (offsetMs === corrected) offsetMs = signed.offsetMs;
      };
      return { isNew: true, undo: isTold ? undefined : undo };
    },
  };
};
