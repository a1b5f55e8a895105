// How numbers, sizes, times and tables read in a terminal.
import { styleText } from 'node:util';

const styles = ['bold', 'dim', 'red', 'green', 'yellow'] as const;
type Style = (typeof styles)[number];

export type Paint = Readonly<Record<Style, (text: string) => string>>;

/** The colors of a stream; other than on a terminal they leave the text as it is. */
export function createPaint(stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): Paint {
  const colored = stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
  // The stream and its support for colors are known here: newer releases of Node would check process.stdout.
  const paint = (style: Style) => (text: string) =>
    colored ? styleText(style, text, { validateStream: false }) : text;
  return {
    bold: paint('bold'),
    dim: paint('dim'),
    red: paint('red'),
    green: paint('green'),
    yellow: paint('yellow'),
  };
}

/** A number with thousands separators. */
export const formatCount = (count: number): string => count.toLocaleString('en-US');

/** A count with its noun, singular or plural. */
export const formatNumberOf = (count: number, noun: string): string =>
  `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;

const byteUnits = ['bytes', 'kB', 'MB', 'GB', 'TB'] as const;

/** A size in the largest unit that leaves a number of at least 1, powers of 1000. */
export function formatBytes(bytes: number): string {
  const power = Math.min(byteUnits.length - 1, bytes < 1 ? 0 : Math.floor(Math.log10(bytes) / 3));
  return power === 0 ? `${bytes} bytes` : `${(bytes / 1_000 ** power).toFixed(1)} ${byteUnits[power]}`;
}

/** The last possible date: a server's answer may contain any number. */
const dateSecondsMax = 8.64e12;

/** A second as RFC 3339 in UTC; the number itself if it is not a date. */
export const formatSecond = (seconds: number): string =>
  Math.abs(seconds) <= dateSecondsMax ? new Date(seconds * 1_000).toISOString().replace('.000Z', 'Z') : String(seconds);

/** A time as RFC 3339 in UTC, to the second. */
export const formatMoment = (ms: number): string => formatSecond(Math.floor(ms / 1_000));

/** A duration as `mm:ss`, or with hours. */
export function formatDuration(seconds: number): string {
  const two = (value: number) => `${value}`.padStart(2, '0');
  const minutes = Math.floor(seconds / 60);
  const clock = `${two(minutes % 60)}:${two(seconds % 60)}`;
  return minutes < 60 ? clock : `${Math.floor(minutes / 60)}:${clock}`;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a terminal
const controls = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

/** Untrusted text without terminal control and bidirectional characters; newlines and tabs stay. */
export const withoutControls = (text: string): string => text.replace(controls, '\ufffd');

// Control sequences of this program: redrawing a bar or a screen, clearing lines, colors.
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above
const drawing = /^(\r\x1b\[K|\x1b\[H|(?:\x1b\[\?(?:25|1049)[hl])+)?(.*?)(\x1b\[J)?$/s;
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above
const colour = /\x1b\[(?:[0-2]|22|3[1-39])m|\x1b\[K(?=\n)/;
const colourOrControl = new RegExp(`(${colour.source})|${controls.source}`, 'g');

/** A command's output without control sequences from untrusted text. */
export function cleanOutput(text: string): string {
  if (text.search(controls) < 0) return text;
  const [, start = '', middle = '', end = ''] = drawing.exec(text) ?? [];
  return `${start}${middle.replace(colourOrControl, (_, own?: string) => own ?? '\ufffd')}${end}`;
}

const unescaped = /[\x7f-\x9f\u2028-\u202e\u2066-\u2069]/g;

/** A value as one line of JSON that also escapes DEL and the C1 controls, which JSON allows and terminals interpret. */
export function toJsonLine(value: unknown, replacer?: (key: string, value: unknown) => unknown): string {
  const toEscape = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return `${JSON.stringify(value, replacer).replace(unescaped, toEscape)}\n`;
}

/** Untrusted text on one line. */
const toCell = (text: string): string => withoutControls(text).replace(/[\n\t]/g, '\ufffd');

export type Column = { readonly title: string; readonly align?: 'right' };

/** A table with a header and columns two spaces apart; without borders, so that it can be cut and sorted. */
export function renderTable(columns: readonly Column[], rows: readonly (readonly string[])[], { bold }: Paint): string {
  const cells = rows.map((row) => row.map(toCell));
  const cellAt = (row: readonly string[], i: number) => row[i] ?? '';
  const widths = columns.map(({ title }, i) =>
    cells.reduce((width, row) => Math.max(width, cellAt(row, i).length), title.length),
  );
  const renderRow = (row: readonly string[]): string =>
    columns
      .map(({ align }, i) => {
        const width = widths[i] ?? 0;
        return align === 'right' ? cellAt(row, i).padStart(width) : cellAt(row, i).padEnd(width);
      })
      .join('  ')
      .trimEnd();
  const header = bold(renderRow(columns.map(({ title }) => title)));
  return `${[header, ...cells.map(renderRow)].join('\n')}\n`;
}

/** Names and values, one pair per line, values aligned. */
export function renderPairs(pairs: readonly (readonly [name: string, value: string])[]): string {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `${name.padEnd(width)}  ${toCell(value)}\n`).join('');
}
