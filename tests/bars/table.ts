// docs/reliability.md's table, from the rows and their last results.
import { table, thousands } from '../../bench/figures/tables.ts';
import { type Bar, isMissing, type Row } from './bar.ts';
import type { BarResult, Results } from './results.ts';
import type { Tally } from './tally.ts';

const number = (value: number): string =>
  Number.isInteger(value) ? thousands(value) : String(Number(value.toPrecision(3)));

/** `0 lost, 12,642 acknowledged`. */
const words = (tally: Tally): string =>
  Object.entries(tally)
    .map(([name, value]) => wordsOf(name, value))
    .join(', ');

const wordsOf = (name: string, value: number): string => {
  const [, what, bound] = /^(.*), (at most|at least)$/.exec(name) ?? [];
  if (what === 'tests passed') return `${number(value)} tests passed`;
  return what === undefined ? `${number(value)} ${name}` : `${bound} ${number(value)} ${what}`;
};

const controlText = (bar: Bar, result: BarResult | undefined): string =>
  bar.control === undefined
    ? '–'
    : `${bar.control}: ${result === undefined ? 'not run in full yet' : words(result.control)}`;

const resultText = (bar: Bar, result: BarResult | undefined): string => {
  if (result === undefined) return 'not run in full yet';
  const isFull = result.count >= (bar.count?.full ?? 1);
  const failures = result.failures.map((failure) => `**${failure}**. `).join('');
  return `${failures}${isFull ? '' : `${number(result.count)} only: `}${words(result.found)}`;
};

const rowOf = (key: string, row: Row, result: BarResult | undefined): readonly string[] => {
  if (isMissing(row)) return [key, row.test, '–', '–', '–', row.why, '–', '–'];
  const { count } = row;
  return [
    key,
    row.test,
    count?.unit ?? 'runs',
    number(count?.reduced ?? 1),
    number(count?.full ?? 1),
    resultText(row, result),
    controlText(row, result),
    result === undefined ? '–' : `${result.date}; ${result.machine}; ${result.commits.join(', ')}`,
  ];
};

const head = ['', 'test', 'counted', 'in `npm test`', 'in full', 'result', 'control that must fail', 'when and where'];

export const renderTable = (rows: Readonly<Record<string, Row>>, results: Results): string =>
  table(
    head,
    Object.entries(rows).map(([key, row]) => rowOf(key, row, results[key])),
  );

const place = /(<!-- generated: bars -->\n)[\s\S]*?(\n<!-- end -->)/;

export const renewDocument = (text: string, rendered: string): string => {
  if (!place.test(text)) throw new Error('docs/reliability.md has no <!-- generated: bars -->');
  return text.replace(place, (_, start: string, end: string) => `${start}\n${rendered}\n${end}`);
};
