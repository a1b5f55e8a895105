// The file of `sealpost sandbox --prices`: its streams, and when it starts. Errors name the file and the line.

import { SandboxError } from '@sealpost/sandbox/push/errors';
import { compileSeries, firstDateMs, readSeries } from '@sealpost/sandbox/push/series';
import type { Catalog, CompiledEvent } from '@sealpost/sandbox/scenario/compile';
import { ScenarioError } from '@sealpost/sandbox/scenario/parse';
import { parseSpecName, type StreamSpec } from '@sealpost/simulator';
import { usageError } from '../../failure.ts';
import { readFileAndMode } from '../../private-file.ts';

export type PricesPlan = {
  readonly file: string;
  readonly csv: string;
  /** The streams of the file, made up where they are not simulated assets. */
  readonly specs: readonly StreamSpec[];
  /** When its first date is; undefined where it has none. */
  readonly firstSecond: number | undefined;
};

export async function readPrices(file: string): Promise<PricesPlan> {
  const { text: csv } = await readFileAndMode(file);
  return inPrices(file, () => {
    const names = new Set(readSeries(csv, 0).map(({ stream }) => stream));
    const specs = new Map([...names].map(specOf).map((spec) => [`${spec.kind} ${spec.pair.toLowerCase()}`, spec]));
    const firstMs = firstDateMs(csv);
    return {
      file,
      csv,
      specs: [...specs.values()],
      firstSecond: firstMs === undefined ? undefined : Math.floor(firstMs / 1_000),
    };
  });
}

/** What the prices do in a sandbox that starts at a second. */
export function compilePrices(plan: PricesPlan | undefined, startSecond: number, streams: Catalog): CompiledEvent {
  if (plan === undefined) return { effects: [], acts: [] };
  const { file, csv } = plan;
  return inPrices(file, () => compileSeries(readSeries(csv, startSecond * 1_000), streams));
}

/** The simulated price of a stream that is never simulated does not matter. */
const specOf = (name: string): StreamSpec => {
  try {
    return parseSpecName(name);
  } catch (error) {
    if (error instanceof RangeError) return parseSpecName(`${name}=1`);
    throw error;
  }
};

const inPrices = <T>(file: string, read: () => T): T => {
  try {
    return read();
  } catch (error) {
    if (error instanceof SandboxError || error instanceof ScenarioError || error instanceof RangeError)
      throw usageError(`${file}: ${error.message}`, { cause: error });
    throw error;
  }
};
