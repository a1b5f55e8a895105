// A stream's interval: the median of its last 20 windows. Decides whether a report is late.
import type { DecodedReport } from '@sealpost/client';
import { timeResolutionOf } from '@sealpost/protocol';

/** A report's window, both ends included. */
export type StreamWindow = Pick<DecodedReport, 'feedId' | 'validFromMs' | 'observationsMs'>;

/** Windows in the median. */
export const windowsMax = 20;

/** The first millisecond after a window, which includes its last second or millisecond. */
export const windowEndMs = ({ feedId, observationsMs }: StreamWindow): number =>
  observationsMs + (timeResolutionOf(feedId) === 'milliseconds' ? 1 : 1_000);

/** How long a report is valid; at least one second if the stream's timestamps are in seconds. */
export const windowLengthMs = (window: StreamWindow): number => windowEndMs(window) - window.validFromMs;

/** The median, the lower of two; undefined if empty. */
export const medianOf = (values: readonly number[]): number | undefined =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)];

/** The interval of a stream in milliseconds, from its windows, oldest first; undefined if there are none. */
export const intervalMsOf = (windows: readonly StreamWindow[]): number | undefined =>
  medianOf(windows.slice(-windowsMax).map(windowLengthMs));
