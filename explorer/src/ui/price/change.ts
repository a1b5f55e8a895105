// The change of a price, exactly and in percent.

/** The change of a price: exactly, and in millionths of a percent rounded toward zero; undefined if the first price is 0. */
export const changeOf = (
  first: bigint,
  last: bigint,
): { readonly difference: bigint; readonly percent: bigint | undefined } => ({
  difference: last - first,
  percent: first === 0n ? undefined : ((last - first) * 100n * percentUnit) / (first < 0n ? -first : first),
});

const percentUnit = 1_000_000n;

/** `+1.25 %`, always with its sign; a small change has as many digits as show it: `−0.0036 %`. */
export function formatPercent(percent: bigint, difference: bigint): string {
  const size = percent < 0n ? -percent : percent;
  const sign = difference === 0n ? '' : difference < 0n ? '−' : '+';
  if (size === 0n) return `${sign}${difference === 0n ? '0.00' : 'less than 0.000001'} %`;
  const fraction = String(size % percentUnit).padStart(6, '0');
  const digits = size >= percentUnit / 100n ? 2 : Math.min(6, fraction.search(/[1-9]/) + 2);
  return `${sign}${size / percentUnit}.${fraction.slice(0, digits)} %`;
}
