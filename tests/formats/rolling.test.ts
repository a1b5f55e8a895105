import { expect, test } from 'vitest';
import { countOf, tally, tallyControl } from '../support/full-count.ts';
import { readReleases } from './packed-files.ts';
import { releasedCommand, whyNotBuilt } from './released-code.ts';
import { type RollingPlan, rollingSteps, runRolling } from './rolling.ts';

const last = readReleases().at(-1);
const { version = 'the first release', commit = '' } = last ?? {};
const skipped = last === undefined ? 'no release has these formats yet' : whyNotBuilt(commit);
const count = countOf(1, 5);
const size =
  count === 1 ? { seconds: 1.5, streams: 10, readsPerSecond: 20 } : { seconds: 8, streams: 50, readsPerSecond: 100 };

const expectNothingLost = (result: Awaited<ReturnType<typeof runRolling>>, plan: RollingPlan): void => {
  expect(result).toMatchObject({
    refused: 0,
    wrongOnes: [],
    lost: 0,
    notStreamed: 0,
    controlNotStreamed: 1,
    outOfOrder: 0,
    latestWentBack: 0,
    codes: plan.steps.map(() => 0),
  });
  // While the only node is replaced, a client's retries may run out.
  if (plan.nodes > 1) expect(result.failures).toEqual([]);
  // A node that is being replaced refuses connections; nothing else may happen to a read.
  expect(['200', 'failed']).toEqual(expect.arrayContaining(result.statuses));
  expect(result.acknowledged).toBe(result.sent);
  expect(result.reads).toBeGreaterThan(0);
};

test.skipIf(skipped !== undefined)(
  `rolling upgrade: two nodes of ${version} replaced by this release in turn, one rolled back, lose nothing and fail no read`,
  async () => {
    const plan = { nodes: 2, steps: rollingSteps, ...size };
    for (let i = 0; i < count; i++) {
      const result = await runRolling(releasedCommand(commit), plan);
      const { acknowledged, lost, notStreamed, latestWentBack, wrong, failures, reads } = result;
      tally({
        acknowledged,
        lost,
        'not delivered live': notStreamed,
        'times `latest` went back': latestWentBack,
        'wrong answers': wrong,
        'calls of the SDK': reads,
        'failed ones': failures.length,
        'times the limit of an account was given by both releases together': Number(result.limitShare.toFixed(2)),
      });
      tallyControl({ lost: result.controlLost ?? 0 });
      expectNothingLost(result, plan);
      // Without an exchange between the releases it would be near 2.
      expect(result.limitShare).toBeLessThan(1.4);
      expect(result.controlLost).toBe(1);
    }
  },
  3_600_000,
);

// In full runs only: `npm test` opens a copy of a released store, with a worker, in upgrade.test.ts.
test.runIf(skipped === undefined && count > 1)(
  `upgrade in place: a store in a folder goes from ${version} to two workers of this release and back under load, and loses nothing`,
  async () => {
    const steps = [
      { node: 0, by: 'present', args: ['--workers', '2'] },
      { node: 0, by: 'released' },
    ] as const;
    const plan = { nodes: 1, steps, ...size };
    expectNothingLost(await runRolling(releasedCommand(commit), plan), plan);
  },
);
