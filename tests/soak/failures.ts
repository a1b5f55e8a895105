// Which failures of clients the documents allow: each allowance belongs to an event, and says whose failures, which ones, for how long and why.
import type { Kind } from '../faults/node-load.ts';
import type { ClientKind } from './client-kinds.ts';

/** Clients behind the balancer, and what is sent to a node directly. */
export type FailingKind = ClientKind | `direct ${Kind}`;

export type Failure = { readonly atMs: number; readonly kind: FailingKind; readonly text: string };

/** Failures that the documents allow during an event. */
export type Allowance = {
  readonly kinds: readonly FailingKind[];
  /** Of the failure's whole text. */
  readonly failure: RegExp;
  /** After the end of the event. */
  readonly forMs: number;
  /** What the documents say. */
  readonly why: string;
};

/** An event with what it allows. */
export type Allowing = {
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly allows: readonly Allowance[];
};

/** One line of the table of what was allowed. */
export type AllowedRow = {
  readonly event: string;
  readonly kind: FailingKind;
  readonly why: string;
  readonly count: number;
};

export type Verdicts = { readonly forbidden: readonly Failure[]; readonly allowed: readonly AllowedRow[] };

/** Each failure is allowed by one event at most, the latest; those that none allows are forbidden. */
export const judgeFailures = (failures: readonly Failure[], events: readonly Allowing[]): Verdicts => {
  const forbidden: Failure[] = [];
  const rows = new Map<string, AllowedRow>();
  for (const failure of failures) {
    const found = findAllowance(failure, events);
    if (found === undefined) {
      forbidden.push(failure);
      continue;
    }
    const { kind } = failure;
    const key = `${found.event}/${kind}/${found.why}`;
    rows.set(key, { ...found, kind, count: (rows.get(key)?.count ?? 0) + 1 });
  }
  return { forbidden, allowed: [...rows.values()].toSorted((a, b) => b.count - a.count) };
};

const findAllowance = (
  { atMs, kind, text }: Failure,
  events: readonly Allowing[],
): { readonly event: string; readonly why: string } | undefined => {
  for (const { name, fromMs, toMs, allows } of events.toReversed()) {
    if (atMs < fromMs) continue;
    const one = allows.find(
      ({ kinds, failure, forMs }) => atMs <= toMs + forMs && kinds.includes(kind) && failure.test(text),
    );
    if (one !== undefined) return { event: name, why: one.why };
  }
  return undefined;
};
