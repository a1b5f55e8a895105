// What became of reports that were pushed while a sandbox runs: whoever asked gets the report, or the error.
import type { ReportJson } from '@sealpost/protocol';
import type { ScenarioAct } from '../scenario/compile.ts';
import type { ScenarioEvent } from '../scenario/event-table.ts';
import { ScenarioError } from '../scenario/parse.ts';
import { SandboxError } from './errors.ts';

export type PushAct = Extract<ScenarioAct, { kind: 'push' }>;

/** How many events of a list push to the stream of one of them before it: each report of a stream has a second of its own. */
export function pushesBefore(events: readonly ScenarioEvent[], index: number): number {
  const event = events[index];
  if (event?.type !== 'push' || event.at !== undefined) return 0;
  const isSame = (one: ScenarioEvent): boolean =>
    one.type === 'push' && one.at === undefined && one.stream === event.stream;
  return events.slice(0, index).filter(isSame).length;
}

type Outcome = { report?: ReportJson; error?: unknown };

export function createPushes() {
  const outcomes = new Map<ScenarioAct, Outcome>();
  return {
    /** Keeps what became of a push for whoever waits for it; rejects where nobody does. */
    settle: async (act: PushAct, pushing: Promise<ReportJson>): Promise<void> => {
      const outcome = outcomes.get(act);
      if (outcome === undefined) return void (await pushing);
      try {
        outcome.report = await pushing;
      } catch (error) {
        outcome.error = error;
      }
    },
    /** `second` is when the last of these acts that is a push is due, 0 without one; `of` is read after that. */
    waitFor: (acts: readonly ScenarioAct[]) => {
      const pushes = acts.filter(({ kind }) => kind === 'push');
      for (const act of pushes) outcomes.set(act, {});
      return {
        second: Math.max(0, ...pushes.map(({ second }) => second)),
        /** The report of an event. Throws what its push failed with. */
        of: ([act]: readonly ScenarioAct[], path: string): { readonly report?: ReportJson } => {
          const { report, error }: Outcome = (act && outcomes.get(act)) ?? {};
          if (act !== undefined) outcomes.delete(act);
          if (error !== undefined) throw asScenarioError(error, path);
          return report === undefined ? {} : { report };
        },
      };
    },
  };
}

const asScenarioError = (error: unknown, path: string): unknown => {
  if (!(error instanceof SandboxError)) return error;
  const field = error.argument === 'at' ? 'observedAt' : error.argument;
  return new ScenarioError(path === '' ? field : `${path}.${field}`, error.message);
};
