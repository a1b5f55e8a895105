// A stream's interval: the median of its last 20 windows. Ages are judged by it.
import type { DecodedReport } from '@sealpost/client';
import { timeResolutionOf } from '@sealpost/protocol';

/** A report's window, both ends included. */
export type ReportWindow = Pick<DecodedReport, 'feedId' | 'validFromMs' | 'observationsMs'>;

/** Windows that the median is taken of. */
export const windowsMax = 20;

/** The first millisecond after a window: its last second, or millisecond, belongs to it. */
export const windowEndMs = ({ feedId, observationsMs }: ReportWindow): number =>
  observationsMs + (timeResolutionOf(feedId) === 'milliseconds' ? 1 : 1_000);

/** How long a report's price applies; one second at least where the stream counts seconds. */
export const windowLengthMs = (window: ReportWindow): number => windowEndMs(window) - window.validFromMs;

/** The middle one, the lower of two; undefined of none. */
export const medianOf = (values: readonly number[]): number | undefined =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)];

/** The interval of a stream in milliseconds, from its windows, oldest first; undefined of none. */
export const intervalMsOf = (windows: readonly ReportWindow[]): number | undefined =>
  medianOf(windows.slice(-windowsMax).map(windowLengthMs));
