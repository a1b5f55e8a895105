// Mutants that no test can find, because they behave as the original does. Each has its reason; one that no longer survives fails the row.

export type Equivalent = {
  readonly path: string;
  /** The source text that Stryker replaces, and what with. */
  readonly from: string;
  readonly to: string;
  readonly because: string;
};

export const equivalents: readonly Equivalent[] = [];
