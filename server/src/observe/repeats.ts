// Lines of the log that would repeat: rejections are counted by address, failures by where they were thrown, and the counts logged once a minute.
import type { Logger } from 'pino';
import { type RequestEvent, sandboxFault } from '../http/pipeline.ts';
import { limitedNetworkOf } from '../runtime/ip-address.ts';
import { cut } from './log-line.ts';
import { countedCodes, type Observation } from './observe.ts';

/** Keys per minute; the others are counted together, under null. */
const keysMax = 100;
const minuteMs = 60_000;

type MinuteCounts = {
  /** Counts one. Is it the first of its key and code, in this minute and, while there were some in each, those before? */
  readonly add: (key: string, code: string) => boolean;
  readonly flush: () => void;
};

/** `later` calls back after a time. The first of a code counts as `first`. `write` gets the codes of a key with how often each was counted. */
const createMinuteCounts = (
  later: (act: () => void, ms: number) => void,
  first: 0 | 1,
  write: (key: string | null, codes: Readonly<Record<string, number>>) => void,
): MinuteCounts => {
  let counts = new Map<string | null, Map<string, number>>();
  const end = (): void => {
    const ended = counts;
    counts = new Map();
    for (const [key, codes] of ended) {
      const counted = [...codes].filter(([, count]) => count > 0);
      if (counted.length === 0) continue;
      write(key, Object.fromEntries(counted));
      keep(key, new Map(counted.map(([code]) => [code, 0])));
    }
  };
  /** The minute begins with the first key. */
  const keep = (key: string | null, codes: Map<string, number>): void => {
    if (counts.size === 0) {
      const begun = counts;
      later(() => counts === begun && end(), minuteMs);
    }
    counts.set(key, codes);
  };
  return {
    add: (key, code) => {
      const place = counts.has(key) || counts.size < keysMax ? key : null;
      if (!counts.has(place)) keep(place, new Map());
      const codes = counts.get(place) as Map<string, number>; // just put there
      const before = codes.get(code);
      codes.set(code, before === undefined ? first : before + 1);
      return before === undefined;
    },
    flush: end,
  };
};

const shedCodes: readonly string[] = countedCodes.shed;

export const isShedAnswer = ({ code }: RequestEvent): boolean => code !== null && shedCodes.includes(code);

// Shedding is meant to be cheap: it has no cause worth a stack, and of many only a few lines. A sandbox answers 5xx on purpose; any other 5xx has a cause.
export const isFailure = (event: RequestEvent): boolean =>
  event.status >= 500 && event.code !== sandboxFault && !isShedAnswer(event);

const rejectedCodes: ReadonlySet<string> = new Set([...countedCodes.authFailure, ...countedCodes.rateLimited]);

/**
 * What happens too often for a line each, whatever the level: rejections are counted by address, failures by their place. Only the first failure of a
 * place has its cause, and only the first warning of an address a line.
 */
export const createRepeats = (later: (act: () => void, ms: number) => void, logger: Logger) => {
  const sum = (codes: Readonly<Record<string, number>>): number => Object.values(codes).reduce((a, b) => a + b, 0);
  const rejections = createMinuteCounts(later, 1, (address, codes) =>
    logger.warn({ event: 'rejections', address, count: sum(codes), codes }),
  );
  const failures = createMinuteCounts(later, 0, (error, codes) =>
    logger.error({ event: 'suppressed', of: 'request', count: sum(codes), codes, error }),
  );
  return {
    /** Counts it. Is there a line about the same already? */
    note: (observation: Observation): boolean => {
      if (observation.kind === 'warning')
        return observation.address !== undefined && !rejections.add(networkOf(observation.address), observation.code);
      if (observation.kind !== 'request' || observation.code === null) return false;
      const { code, address, error } = observation;
      if (rejectedCodes.has(code)) rejections.add(networkOf(address), code);
      return isFailure(observation) && !failures.add(placeOf(error), code);
    },
    flush: (): void => {
      rejections.flush();
      failures.flush();
    },
  };
};

/** What limits count an address by, spelled so that firewalls take it. */
const networkOf = (address: string): string => {
  const network = limitedNetworkOf(address);
  return network?.includes(':') ? `${network}::/64` : (network ?? '');
};

const causesMax = 3;

/**
 * Where an error was thrown, with its name and code and those of its causes, since a database's client makes all of its errors in one place. Messages may
 * differ from one to the next.
 */
const placeOf = (error: unknown): string => {
  if (!(error instanceof Error)) return cut(String(error));
  const kinds: string[] = [];
  for (let one: unknown = error; one instanceof Error && kinds.length <= causesMax; one = one.cause) {
    const { code } = one as { code?: unknown }; // node's errors and ours have one
    kinds.push(code === undefined ? one.name : `${one.name} ${code}`);
  }
  return cut(`${kinds.join(', ')} ${/^ *(at .*)$/m.exec(error.stack ?? '')?.[1] ?? ''}`);
};
