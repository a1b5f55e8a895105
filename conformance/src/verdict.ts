// How a check ends other than by passing: a promise that does not hold, or that cannot be checked here.
import type { ReceivedAnswer, RequestToSend } from './exchange.ts';

/** A promise that does not hold. */
export class MismatchError extends Error {
  override readonly name = 'MismatchError';
  readonly expected: string;
  readonly actual: string;
  readonly request: RequestToSend | undefined;

  constructor(expected: string, actual: string, request?: RequestToSend) {
    super(`Expected ${expected}, got ${actual}.`);
    this.expected = expected;
    this.actual = actual;
    this.request = request;
  }
}

/** A promise that this deployment or account gives no opportunity to check. */
export class SkipError extends Error {
  override readonly name = 'SkipError';
}

/** Throws unless the condition holds. `actual` is computed only then. */
export function demand(
  holds: boolean,
  expected: string,
  actual: () => string,
  source?: Pick<ReceivedAnswer, 'request'>,
): void {
  if (!holds) throw new MismatchError(expected, actual(), source?.request);
}

/** Throws unless the answer has one of these statuses. */
export const demandStatus = (
  answer: ReceivedAnswer,
  statuses: readonly number[],
  expected = statuses.join(' or '),
): void => demand(statuses.includes(answer.status), expected, () => describeAnswer(answer), answer);

const excerptLength = 160;

/** The beginning of a text on one line. */
export function excerpt(text: string): string {
  const line = text.slice(0, 4 * excerptLength).replace(/\s+/g, ' ');
  return line.length > excerptLength ? `${line.slice(0, excerptLength)}…` : line;
}

/** Status and the beginning of the body. */
export const describeAnswer = ({ status, text }: Pick<ReceivedAnswer, 'status' | 'text'>): string =>
  text === '' ? `${status} without a body` : `${status} ${excerpt(text)}`;
