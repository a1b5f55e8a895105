// All faults of a sandbox: set, listed and removed here, and applied by the hooks that a node gets from it.
import type { Hex } from '@sealpost/protocol';
import { createDecisions, type ListedFault } from './decisions.ts';
import { createJournal, type JournaledRequest } from './journal.ts';
import type { Fault } from './kinds.ts';
import { FaultError } from './parse.ts';

/**
 * Signs a body as the oracles of a config digest do, and returns the full report; undefined for a digest whose keys it does not have. `sign` of a
 * simulated network is one.
 */
export type SignReport = (body: Hex, epochAndRound: number, configDigest: Hex) => Hex | undefined;

export type FaultsOptions = {
  /** Decides together with the requests which ones are faulted. */
  readonly seed: string;
  /** Sandbox time: what `from`, `to` and `for` of a fault are compared with. */
  readonly nowMs: () => number;
  /** Needed for reports that are wrong but properly signed: `wrong-window` and `two-reports`. */
  readonly sign?: SignReport;
};

export type Faults = {
  /** Sets a fault: an object, or a line such as `status=503,count=2`. Throws a FaultError that names the field. */
  readonly add: (fault: Fault | string | unknown) => ListedFault;
  /** False when there is no such fault. */
  readonly remove: (id: string) => boolean;
  readonly clear: () => void;
  /** In the order in which they were set. */
  readonly list: () => readonly ListedFault[];
  /** The last requests, oldest first. */
  readonly requests: () => readonly JournaledRequest[];
  readonly clearRequests: () => void;
};

const signedKinds: readonly Fault['kind'][] = ['wrong-window', 'two-reports'];

export const createFaults = ({ seed, nowMs, sign }: FaultsOptions): Faults => {
  const decisions = createDecisions({
    seed,
    nowMs,
    objection: ({ kind }) =>
      sign === undefined && signedKinds.includes(kind)
        ? new FaultError('kind', `kind is "${kind}", which needs the keys of the oracles. This sandbox has none.`)
        : undefined,
  });
  const journal = createJournal();
  return {
    add: decisions.add,
    remove: decisions.remove,
    clear: decisions.clear,
    list: decisions.list,
    requests: journal.list,
    clearRequests: journal.clear,
  };
};
