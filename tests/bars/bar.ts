// A row of docs/reliability.md: what is tested, by which files, how often in `npm test` and how often in full.

export type Bound = { readonly max?: number; readonly min?: number };

export type Bar = {
  /** What is done, in words. */
  readonly test: string;
  /** The test files, and the words that the names of their tests begin with, if not all of them belong to the row. */
  readonly files: readonly string[];
  readonly names?: string;
  /** What is counted. Rows without a count run the same tests every time. */
  readonly count?: BarCount;
  /** What must come out, by the names of what the tests tally. */
  readonly bounds?: Readonly<Record<string, Bound>>;
  /** What the control does that must be found: a run in which it is not is void. */
  readonly control?: string;
  /** Times are measured, so it runs with the priority that programs have. */
  readonly isTimed?: true;
};

export type BarCount = {
  readonly unit: string;
  /** In `npm test`. */
  readonly reduced: number;
  readonly full: number;
  /** So many in one process; a run that ends goes on after the last whole part. */
  readonly part?: number;
};

/** A row whose test does not exist, with the reason. */
export type Missing = { readonly test: string; readonly why: string };

export type Row = Bar | Missing;

export const isMissing = (row: Row): row is Missing => 'why' in row;
