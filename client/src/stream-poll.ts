// Live reports of a server that pushes none: pages are asked for again and again, one stream after the other.
import { readAfter } from './backfill.ts';
import { SealpostError } from './errors.ts';
import { latest } from './reads.ts';
import { parseReceived } from './received-report.ts';
import { sleep } from './stream-pause.ts';
import type { ConnectionHandlers, ConnectionRequest, Transport } from './stream-transport.ts';

/** From the beginning of a round to the next one. */
const roundMs = 1_000;
/** Between two requests of a server that has answered 429; doubled with each further one. */
const [gapMinMs, gapMaxMs] = [100, 1_000];
/** Where a stream without any report begins: what was observed so long before now counts as new. */
const emptyStartMs = 60_000;
/** A page this full may be followed by another one at once. */
const fullReports = 100;

/** The transport on REST. It is live once the newest report of each stream is known; what is observed after it is told. */
export const polling: Transport = async (request, handlers) => {
  const { feedIds, signal } = request;
  const paced = createPace(signal);
  const lastMs = new Map<string, number>();
  for (const feedId of feedIds) lastMs.set(feedId, await paced(() => newestMs(request, feedId)));
  if (signal.aborted) return 'aborted';
  handlers.opened();
  while (!signal.aborted) {
    const startedMs = performance.now();
    for (const feedId of feedIds) {
      await request.valve.room();
      const from = lastMs.get(feedId) ?? 0;
      lastMs.set(feedId, await paced(() => readNew(request, feedId, from, handlers)));
    }
    await sleep(Math.max(0, startedMs + roundMs - performance.now()), signal);
  }
  return 'aborted';
};

/** Runs one request after the other; after a 429 it waits, tries again, and leaves time between requests from then on. */
const createPace = (signal: AbortSignal) => {
  let gapMs = 0;
  return async (ask: () => Promise<number>): Promise<number> => {
    for (;;) {
      await sleep(gapMs, signal);
      try {
        return signal.aborted ? 0 : await ask();
      } catch (error) {
        if (signal.aborted) return 0;
        if (!(error instanceof SealpostError) || error.status !== 429) throw error;
        gapMs = Math.min(gapMaxMs, Math.max(gapMinMs, gapMs * 2));
        const { retryAfterSeconds } = error.details;
        await sleep(typeof retryAfterSeconds === 'number' ? retryAfterSeconds * 1_000 : roundMs, signal);
      }
    }
  };
};

const newestMs = async ({ get, nowMs, signal }: ConnectionRequest, feedId: string): Promise<number> => {
  try {
    return parseReceived((await latest({ get }, feedId, { signal })).report).observationsMs;
  } catch (error) {
    // A 404 is no report yet; where it is the wrong address, the page after it says so again.
    if (error instanceof SealpostError && error.status === 404) return nowMs() - emptyStartMs;
    throw error;
  }
};

/** Tells what was observed after `fromMs`; the moment of the last one. */
const readNew = async (
  { get, signal }: ConnectionRequest,
  feedId: string,
  fromMs: number,
  { report, missed }: ConnectionHandlers,
): Promise<number> => {
  let last = fromMs;
  for await (const page of readAfter({ get }, feedId, fromMs, signal, () => missed(undefined))) {
    for (const one of page) report(one, undefined);
    last = page.at(-1)?.observationsMs ?? last;
    // The next round reads what is left, which saves the empty page at the end.
    if (page.length < fullReports) break;
  }
  return last;
};
