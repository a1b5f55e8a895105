// Do two kinds of requests take equally long? They are sent in random order over one connection; means and Welch's t are compared after the slowest
// were cropped, because one pause of the machine outweighs thousands of requests.
import { connect } from 'node:net';
import { openKeepAlive, type RawAnswer } from '../support/raw-http.ts';

/** Makes the bytes of a request. Called before its time is taken. */
export type RequestKind = () => string;

export type Difference = {
  /** What part of all requests is compared, fastest first. */
  readonly crop: number;
  readonly meanUs: number;
  readonly t: number;
};

export const crops = [0.9, 0.95, 0.99] as const;

/** Sends so many of each kind on average; every answer is passed on. Returns the µs that each took, by kind. */
export const measureKinds = async (
  port: number,
  kinds: readonly RequestKind[],
  count: number,
  roll: (sides: number) => number,
  onAnswer: (answer: RawAnswer, kind: number) => void,
): Promise<readonly (readonly number[])[]> => {
  const times: number[][] = kinds.map(() => []);
  let connection = openKeepAlive(connect({ port, host: '127.0.0.1', noDelay: true }));
  const warmUp = Math.min(2_000, count);
  for (let i = -warmUp; i < count * kinds.length; i++) {
    const kind = roll(kinds.length);
    const bytes = (kinds[kind] as RequestKind)(); // below the length
    const startedMs = performance.now();
    const answer = await connection.ask(bytes);
    const us = (performance.now() - startedMs) * 1_000;
    onAnswer(answer, kind);
    if (i >= 0) times[kind]?.push(us);
    if (answer.headers.connection !== 'close') continue;
    connection.close();
    connection = openKeepAlive(connect({ port, host: '127.0.0.1', noDelay: true }));
  }
  connection.close();
  return times;
};

const momentsOf = (values: readonly number[]) => {
  const mean = values.reduce((sum, one) => sum + one, 0) / values.length;
  const variance = values.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (values.length - 1);
  return { mean, error: variance / values.length };
};

/** How the second kind differs from the first at every crop; both are cropped at the same time. */
export const compareTimes = (first: readonly number[], second: readonly number[]): readonly Difference[] => {
  const all = [...first, ...second].sort((a, b) => a - b);
  return crops.map((crop) => {
    const bound = all[Math.ceil(all.length * crop) - 1] ?? 0;
    const [a, b] = [first, second].map((times) => momentsOf(times.filter((one) => one <= bound))) as [
      ReturnType<typeof momentsOf>,
      ReturnType<typeof momentsOf>,
    ]; // as many as there were
    return { crop, meanUs: b.mean - a.mean, t: (b.mean - a.mean) / Math.sqrt(a.error + b.error) };
  });
};
