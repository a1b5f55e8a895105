// Every reliability test: 1 to 46 by the promise that they hold to a number, then further ones by name. docs/reliability.md is rendered from this table.
import type { BarCount, Row } from './bar.ts';
import { accessBars } from './rows/access.ts';
import { durabilityBars } from './rows/durability.ts';
import { furtherBars } from './rows/further.ts';
import { httpBars } from './rows/http.ts';
import { qualityBars } from './rows/quality.ts';

export const rows = {
  ...accessBars,
  ...httpBars,
  ...durabilityBars,
  ...qualityBars,
  ...furtherBars,
} as const satisfies Readonly<Record<string, Row>>;

export type BarKey = {
  [Key in keyof typeof rows]: (typeof rows)[Key] extends { readonly count: BarCount } ? `${Key}` : never;
}[keyof typeof rows];

export const barCountOf = (key: BarKey): BarCount => rows[key].count;
