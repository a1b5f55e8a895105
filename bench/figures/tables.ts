// Numbers and tables as docs/sizing.md shows them.

/** Two significant digits, three from 100 on. */
export const digits = (value: number): string =>
  value >= 100 ? thousands(Number(value.toPrecision(3))) : String(Number(value.toPrecision(2)));

/** A whole number with commas. */
export const thousands = (value: number): string => Math.round(value).toLocaleString('en-US');

export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string => {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
};
