import { expect, test } from 'vitest';
import { columns, columnsFor, defaultColumns, fitColumns, shownColumns } from './columns.ts';

const width = (names: readonly (keyof typeof columns)[]): number =>
  names.reduce((sum, name) => sum + columns[name].widthPx, 0);

test('columns: prices, changes, spreads and ages are for signed-in users', () => {
  expect(columnsFor(true)).toContain('price');
  expect(columnsFor(false).filter((name) => /price|change|trend|spread|age/.test(name))).toEqual([]);
  expect(defaultColumns(false)).toContain('hours');
  expect(defaultColumns(true)).not.toContain('hours');
});

test('columns: the chosen ones in the order of the page, always with the pair, whatever is stored', () => {
  expect(shownColumns(undefined, true, false)).toEqual(defaultColumns(true));
  expect(shownColumns(['feed', 'schema', 'nonsense'], true, false)).toEqual(['pair', 'schema', 'feed']);
  expect(shownColumns(undefined, true, true)).toEqual(columnsFor(true).filter((name) => name !== 'hours'));
  expect(shownColumns([], true, true)).toEqual(['pair']);
  expect(shownColumns(['price', 'feed'], false, false)).toEqual(['pair', 'feed']);
});

test('columns: those that do not fit are left out, the least important first', () => {
  const shown = defaultColumns(true);
  expect(fitColumns(shown, width(shown))).toEqual(shown);
  expect(fitColumns(shown, width(shown) - 1)).toEqual(shown.filter((name) => name !== 'feed'));
  expect(fitColumns(shown, 718)).toEqual(['pair', 'price', 'change', 'trend', 'age', 'status']);
  expect(fitColumns(shown, 0)).toEqual(['pair']);
});
