// Owns the first value of streams that come into view: asked for together, then one by one where a slow stream's window has not ended yet,
// in a pace that leaves the account half of its rate limit.
import { type Client, SealpostError } from '@sealpost/client';
import { limits, type ReportJson } from '@sealpost/protocol';

export type FirstParts = {
  readonly client: Pick<Client, 'bulk' | 'latest'>;
  /** The server's clock; milliseconds. */
  readonly nowMs: () => number;
  /** Requests per second and route that the account may make; undefined where there is no limit. */
  readonly limit: () => number | undefined;
  readonly sleep: (ms: number) => Promise<void>;
  readonly onReport: (report: ReportJson) => void;
  readonly signal: AbortSignal;
};

/** Reports need a moment from their observation to the server. */
const behindSeconds = 2;
const unlimitedPerSecond = 20;
const triesMax = 3;

/** Milliseconds between two requests of a run: half of what the limit allows, so that what a person does meanwhile is not refused. */
export const paceMs = (limit: number | undefined): number =>
  limit === undefined || limit === 0 ? 1_000 / unlimitedPerSecond : 2_000 / limit;

const chunksOf = (feedIds: readonly string[], size: number): readonly (readonly string[])[] =>
  Array.from({ length: Math.ceil(feedIds.length / size) }, (_, i) => feedIds.slice(i * size, (i + 1) * size));

/** Tells a report for each of the streams that has one; resolves when all were asked for. Rejects where the server cannot be asked. */
export const readFirst = async (feedIds: readonly string[], parts: FirstParts): Promise<void> => {
  const { client, nowMs, onReport, signal } = parts;
  const missing: string[] = [];
  for (const chunk of chunksOf(feedIds, limits.feedIdsMax)) {
    const second = Math.floor(nowMs() / 1_000) - behindSeconds;
    const found = await inTurn(parts, () => client.bulk(chunk, second, { signal }));
    found?.reports.forEach(onReport);
    const later = (found?.missing ?? []).filter(({ reason }) => reason !== 'no_reports');
    missing.push(...later.map(({ feedID }) => feedID));
  }
  for (const feedId of missing) {
    const found = await inTurn(parts, () => client.latest(feedId, { signal }));
    if (found !== undefined) onReport(found.report);
  }
};

/** Asks, then waits for as long as the pace says. A stream without a report gives nothing; a refusal for pace is waited for. */
const inTurn = async <T>({ limit, sleep, signal }: FirstParts, ask: () => Promise<T>): Promise<T | undefined> => {
  for (let tries = 1; ; tries += 1) {
    signal.throwIfAborted();
    try {
      const answer = await ask();
      await sleep(paceMs(limit()));
      return answer;
    } catch (error) {
      if (!(error instanceof SealpostError)) throw error;
      if (error.code === 'report_not_found') {
        await sleep(paceMs(limit()));
        return undefined;
      }
      if (error.code !== 'rate_limited' || tries >= triesMax) throw error;
      await sleep(1_000 * Number(error.details.retryAfterSeconds ?? 1));
    }
  }
};
