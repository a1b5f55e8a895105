// A check of a deployment is a row of a table: what it tests, the sentence that promises it, and a function that throws if it does not hold.
import type { CheckContext } from './check-context.ts';

/** Who promises it: the specification of the API, or what existing SDKs need. */
export type CheckSource = 'specification' | 'SDKs';

export type Check = {
  /** `group.name`. */
  readonly id: string;
  readonly title: string;
  readonly source: CheckSource;
  /** The sentence of the source. */
  readonly sentence: string;
  /** Returns if the promise holds; throws a `MismatchError` if not, a `SkipError` if this deployment cannot show it. */
  readonly run: (context: CheckContext) => Promise<void>;
};

/** The group of a check. */
export const groupOf = ({ id }: Pick<Check, 'id'>): string => id.slice(0, id.indexOf('.'));
