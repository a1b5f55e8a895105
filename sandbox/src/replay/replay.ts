// Replays recorded reports: moved to sandbox time, signed again by the sandbox's oracles, delivered when they are due.

import { type FeedId, type ReportBody, type ReportHead, toReportJson, windowOf } from '@sealpost/protocol';
import { createNetwork, type Effect, type Network, type NetworkOptions, rotatedSeed } from '@sealpost/simulator';
import { mergeRuns, type RecordedReport, type Recording } from './recording.ts';
import { shiftBody } from './shift.ts';

export type ReplayOptions = Pick<Recording, 'file' | 'runs'> &
  NetworkOptions & {
    /** How much later than recorded reports are delivered. */
    readonly shiftSeconds: number;
    readonly effects: readonly Effect[];
  };

export type Replay = {
  /** The lines that are due in these seconds, both ends included. Seconds before those asked for are skipped. */
  readonly linesOf: (from: number, to: number) => Promise<readonly string[]>;
  readonly add: (effects: readonly Effect[]) => Promise<void>;
  readonly close: () => Promise<void>;
};

/** Opens a replay; the file is read as far as time gets. */
export async function openReplay({
  seed,
  n,
  f,
  shiftSeconds,
  effects: known,
  ...recording
}: ReplayOptions): Promise<Replay> {
  const reports = mergeRuns(recording);
  const networks: Network[] = [];
  let effects: readonly Effect[] = [];
  let head: RecordedReport | undefined;
  const add = async (added: readonly Effect[]): Promise<void> => {
    effects = [...effects, ...added].sort((a, b) => a.from - b.from);
    const rotations = effects.filter(({ kind }) => kind === 'rotation').length;
    while (networks.length <= rotations)
      networks.push(await createNetwork({ seed: rotatedSeed(seed, networks.length), n, f }));
  };
  await add(known);
  const networkAt = (second: number): Network =>
    networks[effects.filter(({ kind, from }) => kind === 'rotation' && from <= second).length] as Network; // one more than rotations
  const sign = (recorded: RecordedReport, second: number): string => {
    const { body, fields } = shiftBody(recorded.body, shiftSeconds);
    const full = networkAt(second).sign(body, roundOf(fields));
    return JSON.stringify(toReportJson(fields.feedId, windowOf(fields), full));
  };
  return {
    linesOf: async (from, to) => {
      const lines: string[] = [];
      for (;;) {
        head ??= (await reports.next()).value ?? undefined;
        if (head === undefined || head.second + shiftSeconds > to) return lines;
        const second = head.second + shiftSeconds;
        if (second >= from && !isSilent(effects, head.feedId, second)) lines.push(sign(head, second));
        head = undefined;
      }
    },
    add,
    close: async () => void (await reports.return(undefined)),
  };
}

/** One round for each second, as the simulated network has. */
const roundOf = (fields: ReportBody | ReportHead): number => Math.floor(windowOf(fields).observationsMs / 1_000);

const isSilent = (effects: readonly Effect[], feedId: FeedId, second: number): boolean => {
  let silentUntil = Number.NEGATIVE_INFINITY;
  for (const effect of effects.filter(({ from }) => from <= second)) {
    if (effect.kind === 'rotation' || !effect.feedIds.includes(feedId)) continue;
    if (effect.kind === 'end') return true;
    if (effect.kind === 'silence') silentUntil = Math.max(silentUntil, effect.to);
    if (effect.kind === 'resumption') silentUntil = Number.NEGATIVE_INFINITY;
  }
  return second < silentUntil;
};
