// Owns the client's idea of the server's time: this machine's clock, corrected when a server refuses it.
import type { SealpostError } from './errors.ts';

/** When a request was signed, by this machine's clock, and the correction that it was signed with. */
export type Moment = { readonly machineMs: number; readonly offsetMs: number };

export type Clock = {
  readonly now: () => Moment;
  /**
   * Reads a refusal of a request that was signed at `signed`. `corrected`: by this one; `known`: another call had corrected it meanwhile;
   * undefined: the refusal is about something else.
   */
  readonly correct: (refusal: SealpostError, signed: Moment) => 'corrected' | 'known' | undefined;
};

/** Starts with this machine's clock as it is. */
export const createClock = (machineMs: () => number): Clock => {
  let offsetMs = 0;
  return {
    now: () => ({ machineMs: machineMs(), offsetMs }),
    correct: ({ code, details: { serverTimeMs } }, signed) => {
      if (code !== 'clock_skew' || !Number.isSafeInteger(serverTimeMs)) return undefined;
      if (offsetMs !== signed.offsetMs) return 'known';
      // The server looked at its clock somewhere between request and answer: half-way is off by half the way at most.
      offsetMs = Math.round((serverTimeMs as number) - (signed.machineMs + machineMs()) / 2);
      return 'corrected';
    },
  };
};
