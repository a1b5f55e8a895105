// All faults of a sandbox: set, listed and removed here, and applied by the hooks that a node gets from it.
import type { WrappedNode, Wrapping } from '@sealpost/server/node/hooks';
import { createAnswerChanges } from './answers.ts';
import { createBadReports, type SignReport } from './bad-reports.ts';
import { createDecisions, type ListedFault, type TrackedFault } from './decisions.ts';
import { createIntercept } from './intercept.ts';
import type { Fault } from './kinds.ts';
import { createLiveInterceptors } from './live-interceptors.ts';
import { createPacing } from './pacing.ts';
import { FaultError } from './parse.ts';
import { createRequestLog, type LoggedRequest } from './request-log.ts';

export type { SignReport } from './bad-reports.ts';

export type FaultsOptions = {
  /** Decides together with the requests which ones are faulted. */
  readonly seed: string;
  /** Sandbox time: what `from`, `to` and `for` of a fault are compared with. */
  readonly nowMs: () => number;
  /** Needed for reports that are wrong but properly signed: `wrong-window` and `two-reports`. */
  readonly sign?: SignReport;
};

export type Faults = {
  /** Sets a fault: an object, or a line such as `status=503,count=2`. Throws a FaultError that names the field. Its times are relative to `addedMs`, or to now. */
  readonly add: (fault: Fault | string | unknown, addedMs?: number) => ListedFault;
  /** The same from now on, with a handle that is bound to this fault. */
  readonly addTracked: (fault: Fault | string | unknown) => TrackedFault;
  /** False when there is no such fault. */
  readonly remove: (id: string) => boolean;
  readonly clear: () => void;
  /** Returns the way back to the faults that are set now. */
  readonly mark: () => () => void;
  /** In the order in which they were set. */
  readonly list: () => readonly ListedFault[];
  /** The last requests, oldest first. */
  readonly requests: () => readonly LoggedRequest[];
  readonly clearRequests: () => void;
  /** Applies the faults to a node: its hook `wrap`. */
  readonly wrap: (node: WrappedNode) => Wrapping;
};

const signedKinds: readonly Fault['kind'][] = ['wrong-window', 'two-reports'];

export function createFaults({ seed, nowMs, sign }: FaultsOptions): Faults {
  const decisions = createDecisions({
    seed,
    nowMs,
    objection: ({ kind }) =>
      sign === undefined && signedKinds.includes(kind)
        ? new FaultError('kind', `kind is "${kind}", which needs the keys of the oracles. This sandbox has none.`)
        : undefined,
  });
  const requestLog = createRequestLog();
  return {
    add: decisions.add,
    addTracked: decisions.addTracked,
    remove: decisions.remove,
    clear: decisions.clear,
    mark: decisions.mark,
    list: decisions.list,
    requests: requestLog.list,
    clearRequests: requestLog.clear,
    wrap: ({ reports, view, monotonicMs }) => {
      const { current } = view;
      decisions.useCatalog(() => current().streams);
      const toleratedOf = (configDigest: string) => current().signerSets.get(configDigest)?.f;
      const badReports = createBadReports({ decisions, sign, toleratedOf });
      const changeAnswer = createAnswerChanges({ decisions, badReports, reports, admin: current });
      const pacing = createPacing();
      const live = createLiveInterceptors({ decisions, badReports, monotonicMs });
      return {
        intercept: createIntercept({ decisions, requestLog, changeAnswer, pacing, nowMs }),
        openInterceptor: live.openInterceptor,
        drain: () => {
          pacing.drain();
          live.drain();
        },
      };
    },
  };
}
