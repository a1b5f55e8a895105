// What the programs that open damaged copies tell the suite.

/** Copies whose names begin with this are repaired as well, into a new store. */
export const repairedPrefix = 'repaired-';

/** What became of one copy. */
export type Outcome = {
  /** Why it could not be opened. */
  readonly refused?: string;
  /** Answers with bytes that nobody signed for that place. */
  readonly wrong: readonly string[];
  /** `feedId second` of each report that was not served, before and after all were sent again. */
  readonly missing: readonly string[];
  readonly missingAfter: readonly string[];
  /** Streams whose new report was not stored. */
  readonly notIngested: readonly string[];
  /** Statuses of the list of streams, by account. */
  readonly statuses: readonly number[];
  readonly probes: readonly number[];
  /** Did the log, the probe or a scan name damage? */
  readonly named: readonly string[];
  /** What the new store of a repair lacks, how many records the repair named, and what a check finds in it; absent where there was none. */
  readonly repaired?: {
    readonly missing: readonly string[];
    readonly named: number;
    readonly faults: readonly string[];
  };
};
