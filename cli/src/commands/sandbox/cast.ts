// Where the reports of a sandbox come from, when it starts, and which streams it has: simulated, or replayed from a file.
import type { Stream } from '@sealpost/protocol';
import { openNetwork, openReplaySource, type SandboxNetwork } from '@sealpost/sandbox/network';
import { catalogOf } from '@sealpost/sandbox/replay/catalog';
import { ReplayError, scanRecording } from '@sealpost/sandbox/replay/recording';
import { durationSeconds } from '@sealpost/sandbox/scenario/event-table';
import { createSpecStream, type Effect, type StreamSpec } from '@sealpost/simulator';
import { usageError } from '../../failure.ts';
import { unreadable } from '../../private-file.ts';
import type { ReplayPlan, SandboxPlan } from './plan.ts';

export type SandboxCast = {
  readonly startSecond: number;
  /** Whether time starts at the present, and follows it while the sandbox starts. */
  readonly isNow: boolean;
  readonly pastSeconds: number;
  readonly streams: readonly Stream[];
  /** Undefined for replayed reports. */
  readonly specs: readonly StreamSpec[] | undefined;
  readonly reportsPerSecond: number;
  readonly open: (effects: readonly Effect[]) => Promise<SandboxNetwork>;
};

/** What a plan comes to. The file of a replay is read once. */
export const castOf = (plan: SandboxPlan, nowSecond: number): Promise<SandboxCast> | SandboxCast =>
  plan.replay === undefined ? simulatedCast(plan, nowSecond) : replayedCast(plan, plan.replay, nowSecond);

const simulatedCast = (
  { seed, size, specs, past, startSecond: given }: SandboxPlan,
  nowSecond: number,
): SandboxCast => {
  const startSecond = given ?? nowSecond;
  const pastSeconds = durationSeconds(past) ?? 0;
  const simulated = specs.map((spec) => createSpecStream('testnet', spec, startSecond - pastSeconds));
  const reportsPerSecond = simulated.reduce((sum, { intervalSeconds }) => sum + 1 / intervalSeconds, 0);
  return {
    startSecond,
    isNow: given === undefined,
    pastSeconds,
    streams: simulated.map(({ stream }) => stream),
    specs,
    reportsPerSecond,
    open: (effects) => openNetwork({ seed, ...size, streams: specs, startSecond, effects }, reportsPerSecond),
  };
};

const replayedCast = async (
  { seed, size, startSecond: given }: SandboxPlan,
  { file, isOriginal, catalog }: ReplayPlan,
  nowSecond: number,
): Promise<SandboxCast> => {
  const recording = await scanRecording(file).catch((error: unknown) => {
    if (error instanceof ReplayError) throw usageError(error.message, { cause: error });
    throw error instanceof Error && 'syscall' in error ? unreadable(file, error) : error;
  });
  const { firstSecond, lastSecond, feedIds, reports, runs } = recording;
  const startSecond = given ?? (isOriginal ? firstSecond - 1 : nowSecond);
  const shiftSeconds = isOriginal ? 0 : startSecond + 1 - firstSecond;
  return {
    startSecond,
    isNow: given === undefined && !isOriginal,
    pastSeconds: 0,
    streams: catalogOf(feedIds, catalog),
    specs: undefined,
    reportsPerSecond: reports / (lastSecond - firstSecond + 1),
    open: (effects) => openReplaySource({ file, runs, seed, ...size, shiftSeconds, effects }),
  };
};
