// The reports that schedules append: two streams over midnight, a window per second, some that overlap two of them, some with another price.
import { createSignedReports, secondStream } from '../support/signed-reports.ts';

export const streams = [secondStream(1), secondStream(2)] as const;
export const secondsCount = 8;
const midnight = 1_763_251_200;
/** The first second: half of the windows are before midnight, and half of them after it. */
export const firstSecond = midnight - secondsCount / 2;

const { report } = await createSignedReports('schedules');

const eachSecond = <T>(make: (at: number) => T): readonly T[] =>
  Array.from({ length: secondsCount }, (_, i) => make(firstSecond + i));

/** By stream, then by second. */
export const samples = streams.map((stream) => ({
  plain: eachSecond((at) => report(stream, at, at)),
  wide: eachSecond((at) => report(stream, at, at + 1)),
  other: eachSecond((at) => report(stream, at, at, 2n * 10n ** 18n)),
}));
