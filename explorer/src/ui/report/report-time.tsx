// A time in a report, with the other time zone below, to the nanosecond if the field has them.
import { useExplorer } from '../../state/explorer.ts';

/** The latest time of a Date; a field may hold a later one. */
export const dateMaxMs = 8.64e15;

/** `fraction`: the digits below the millisecond, which a Date cannot hold. */
export function ReportTime({ ms, fraction = '' }: { readonly ms: number; readonly fraction?: string }) {
  const { times } = useExplorer();
  if (ms > dateMaxMs) return <span>{ms} ms, too large for a date</span>;
  const precise = (format: (ms: number) => string): string =>
    fraction === ''
      ? format(ms)
      : format(ms - (ms % 1_000)).replace(
          /[0-9]{2}:[0-9]{2}:[0-9]{2}/,
          (time) => `${time}.${String(ms % 1_000).padStart(3, '0')}${fraction}`,
        );
  return (
    <time class="two-times" dateTime={new Date(ms).toISOString()}>
      {precise(times.format)}
      <span class="time-other">{precise(times.formatOther)}</span>
    </time>
  );
}
