// What is fuzzed: a parser of outside bytes, inputs to begin with, and the invariant that every input must keep.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';

/** A target that is open: it may hold a server, a store, threads. */
export type Target = {
  /** Inputs that the parser accepts, or nearly: made by our own code and simulator, the same in every run. */
  readonly seeds: readonly Buffer[];
  /** Words of the format, which mutations insert. */
  readonly words?: readonly string[];
  /** JSON is also mutated by its structure: `value` is one document, `lines` has one in each line. */
  readonly json?: 'value' | 'lines';
  readonly inputBytesMax?: number;
  /**
   * Parses an input and checks the invariant. Returns a short text for what happened (`accepted v3`, `refused malformed_hex`): inputs with a new
   * one are mutated further. Throws if the invariant does not hold; documented errors are caught here.
   */
  readonly run: (input: Buffer) => string | Promise<string>;
  /** Checks what must hold between inputs, such as a server that still answers. */
  readonly check?: () => Promise<void>;
  readonly close?: () => Promise<void>;
};

export type TargetRow = {
  /** What is parsed, and what must hold. */
  readonly about: string;
  readonly open: () => Promise<Target>;
};

/** An input that broke the invariant. */
export type Finding = {
  readonly kind: 'broken' | 'hang' | 'crash' | 'memory';
  readonly message: string;
  readonly input: Buffer;
};

/** Runs `read`; an error of one of these classes is an outcome, any other breaks the invariant. */
export const outcomeOf = <T>(
  read: () => T,
  // biome-ignore lint/suspicious/noExplicitAny: error classes have constructors of any form
  classes: readonly (new (...args: any[]) => Error)[],
): { readonly value: T } | { readonly error: Error } => {
  try {
    return { value: read() };
  } catch (error) {
    const known = classes.find((one) => error instanceof one);
    if (known === undefined) throw error;
    return { error: error as Error };
  }
};

/** Throws unless two values are equal. Not `assert.deepEqual`, whose picture of the difference takes minutes for long lists. */
export const requireSame = (ours: unknown, expected: unknown, message: string): void =>
  assert.ok(isDeepStrictEqual(ours, expected), message);

/** The message without what differs from input to input: numbers, hex, quoted text. */
export const shapeOf = (message: string): string =>
  (message.split('\n', 1)[0] ?? '')
    .replace(/"(?:[^"\\]|\\.)*"?|“[^”]*”/g, '"…"')
    .replace(/\b(0x)?[0-9a-f]*\d[0-9a-f]*\b/gi, 'N')
    .slice(0, 120);

/** Two findings with the same text are one: the error, and the first line of ours that threw it. */
export const causeOf = (error: unknown): string => {
  if (!(error instanceof Error)) return `threw ${shapeOf(String(error))}`;
  const frame = (error.stack ?? '').split('\n').find((line) => /\/(?:src|tests)\/[^)]*\.tsx?:/.test(line));
  const place = /((?:\w+\/src|tests)\/[^):]*:\d+)/.exec(frame ?? '')?.[1] ?? 'unknown place';
  // A syntax error quotes the input.
  return `${error.name}${error instanceof SyntaxError ? '' : `: ${shapeOf(error.message)}`} at ${place}`;
};

/** A short name for bytes. */
export const nameOf = (input: Uint8Array): string => createHash('sha256').update(input).digest('hex').slice(0, 12);
