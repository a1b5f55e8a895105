import { expect, test } from 'vitest';
import { columns, columnsFor, defaultColumns, fitColumns, toggleColumn, visibleColumns } from './columns.ts';

const width = (names: readonly (keyof typeof columns)[]): number =>
  names.reduce((sum, name) => sum + columns[name].widthPx, 0);

test('columns: prices, changes, spreads and ages are for signed-in users', () => {
  expect(columnsFor(true)).toContain('price');
  expect(columnsFor(false).filter((name) => /price|change|trend|spread|age/.test(name))).toEqual([]);
  expect(defaultColumns(false, false)).toContain('hours');
  expect(defaultColumns(true, false)).not.toContain('hours');
});

test('columns: the default with the choice, in the order of the page, always with the pair, whatever is stored', () => {
  expect(visibleColumns({}, true, false)).toEqual(defaultColumns(true, false));
  expect(visibleColumns({ feed: false, schema: true, pair: false, nonsense: true }, true, false)).toEqual([
    'pair',
    'price',
    'change',
    'trend',
    'spread',
    'age',
    'status',
    'class',
    'schema',
  ]);
  expect(visibleColumns({}, true, true)).toEqual(columnsFor(true).filter((name) => name !== 'hours'));
  expect(visibleColumns({ price: true }, false, false)).toEqual(defaultColumns(false, false));
});

test('columns: a choice changes one column, also after sign-in and in a window of another width', () => {
  const choice = toggleColumn({}, 'class', false, true);
  expect(choice).toEqual({ class: false });
  for (const [isSignedIn, areCards] of [
    [false, false],
    [true, false],
    [true, true],
  ] as const)
    expect(visibleColumns(choice, isSignedIn, areCards)).toEqual(
      defaultColumns(isSignedIn, areCards).filter((name) => name !== 'class'),
    );
  expect(toggleColumn(choice, 'hours', true, false)).toEqual({ class: false, hours: true });
  expect(toggleColumn(choice, 'class', true, false)).toEqual({});
});

test('columns: those that do not fit are left out, the least important first', () => {
  const visible = defaultColumns(true, false);
  expect(fitColumns(visible, width(visible))).toEqual(visible);
  expect(fitColumns(visible, width(visible) - 1)).toEqual(visible.filter((name) => name !== 'feed'));
  expect(fitColumns(visible, 718)).toEqual(['pair', 'price', 'change', 'trend', 'age', 'status']);
  expect(fitColumns(visible, 0)).toEqual(['pair']);
});
