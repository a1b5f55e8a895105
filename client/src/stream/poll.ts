// Live reports from a server that pushes none: polls pages, one stream after the other, within the rate limit (D97).

import { sleep } from '../backoff.ts';
import { SealpostError } from '../errors.ts';
import { latest, page } from '../reads.ts';
import { sleepOnTimer } from '../request/call.ts';
import { createPacedGet } from '../request/pace.ts';
import { readAfter } from './backfill.ts';
import { toReceived } from './received-report.ts';
import type { ConnectionHandlers, ConnectionRequest, Transport } from './transport.ts';

/** Shortest time between the starts of two rounds. */
const roundMs = 1_000;
/** For a stream without reports: those observed this long before now count as new. */
const emptyStartMs = 60_000;
/** After a page with this many reports, the next page is read at once. */
const fullReports = 100;

/** The transport over REST. It is live once the newest report of each stream is known, and delivers what is observed after that. */
export const polling: Transport = async ({ get, ...request }, handlers) => {
  const { feedIds, signal, backpressure } = request;
  try {
    const lastMs = new Map<string, number>();
    const paced: ConnectionRequest = { ...request, get: createPacedGet(get, sleepOnTimer, () => performance.now()) };
    for (const feedId of feedIds) lastMs.set(feedId, await newestMs(paced, feedId));
    handlers.opened();
    for (;;) {
      const startedMs = performance.now();
      for (const feedId of feedIds) {
        await backpressure.drained();
        signal.throwIfAborted();
        lastMs.set(feedId, await readNew(paced, feedId, lastMs.get(feedId) ?? 0, handlers));
      }
      await sleep(Math.max(0, startedMs + roundMs - performance.now()), signal);
    }
  } catch (error) {
    if (signal.aborted) return 'aborted';
    throw error;
  }
};

const newestMs = async ({ get, nowMs, signal }: ConnectionRequest, feedId: string): Promise<number> => {
  try {
    return toReceived((await latest({ get }, feedId, { signal })).report).observationsMs;
  } catch (error) {
    if (!(error instanceof SealpostError) || error.status !== 404) throw error;
    // No report yet, or a wrong address, which the request for a page then shows.
    const startMs = nowMs() - emptyStartMs;
    await page({ get }, feedId, Math.floor(startMs / 1_000), 1, { signal });
    return startMs;
  }
};

/** Delivers what was observed after `fromMs`; returns the last observation. */
const readNew = async (
  { get, bounds, signal }: ConnectionRequest,
  feedId: string,
  fromMs: number,
  { report, missed }: ConnectionHandlers,
): Promise<number> => {
  let last = fromMs;
  for await (const found of readAfter({ get, bounds }, feedId, fromMs, signal, () => missed(undefined))) {
    for (const one of found) report(one, undefined);
    last = found.at(-1)?.observationsMs ?? last;
    // The next round reads the rest, which saves the empty page at the end.
    if (found.length < fullReports) break;
  }
  return last;
};
