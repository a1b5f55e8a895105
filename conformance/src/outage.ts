// Decides when a run gives up: on one path that keeps failing, or on a deployment that is down, so that a run against it ends soon.

export type Outage = {
  /** Counts one attempt. `isLong` are those that take longest: time-outs, and answers that are too large. */
  readonly note: (path: string, isFailed: boolean, isLong: boolean) => void;
  /** Why no request is sent to any path; undefined while they are. */
  readonly ofDeployment: () => string | undefined;
  /** The same for one path. */
  readonly ofPath: (path: string) => string | undefined;
};

type InRow = { failures: number; longs: number };

/** Failed attempts in a row after which a path counts as down; also the deployment, if nothing has ever succeeded. */
const failuresMax = 6;
const longsMax = 3;

const describe = ({ failures, longs }: InRow, factor = 1): string | undefined => {
  if (longs >= factor * longsMax) return `${longs} requests in a row timed out, or their answers were too large.`;
  return failures >= factor * failuresMax ? `${failures} requests in a row failed.` : undefined;
};

export function createOutage(): Outage {
  const all: InRow = { failures: 0, longs: 0 };
  const byPath = new Map<string, InRow>();
  const failing = new Set<string>();
  let hasSucceeded = false;
  const ofDeployment = (): string | undefined => {
    // One path that is down must not end the checks of the others.
    const reason = hasSucceeded ? (failing.size > 1 ? describe(all, 2) : undefined) : describe(all);
    return reason && `The deployment is down: ${reason}`;
  };
  return {
    note: (path, isFailed, isLong) => {
      const one = byPath.get(path) ?? { failures: 0, longs: 0 };
      byPath.set(path, one);
      for (const row of [all, one]) {
        row.failures = isFailed ? row.failures + 1 : 0;
        row.longs = isLong ? row.longs + 1 : 0;
      }
      hasSucceeded ||= !isFailed;
      if (isFailed) failing.add(path);
      else failing.clear();
    },
    ofDeployment,
    ofPath: (path) => {
      const one = byPath.get(path);
      const reason = one && describe(one);
      return ofDeployment() ?? (reason && `${path} is down: ${reason}`);
    },
  };
}
