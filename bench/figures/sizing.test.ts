import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readText, root } from '../../tests/support/source-tree.ts';
import { readFigures, withFigures } from './saved-figures.ts';
import { renderSizing } from './sizing.ts';

test('sizing: docs/sizing.md has what is computed from docs/figures.json', async () => {
  const renewed = renderSizing(readText('docs/sizing.md'), readFigures(join(root, 'docs/figures.json')));
  const hint = 'The figures have changed. Run: npx vitest run bench/figures -u';
  await expect(renewed, hint).toMatchFileSnapshot('../../docs/sizing.md');
});

test('sizing: a document without the place of a part is rejected', () => {
  const figures = readFigures(join(root, 'docs/figures.json'));
  expect(() => renderSizing('# Sizing\n', figures)).toThrow('docs/sizing.md has no <!-- generated: figures -->');
});

test('figures: what is measured again replaces its value, other rows stay, and those of another machine do not', () => {
  const row = (name: string, value: number, unit = 'ms') => ({ name, value, unit });
  const first = withFigures({}, 'live', [row('a', 1.23456), row('b', 2), row('b', 3, 'µs')], '2026-01-01', 'x64', 2);
  const again = withFigures(first, 'live', [row('b', 4)], '2026-01-02', 'x64', 2);
  expect(again.live?.figures).toEqual([
    { name: 'a', value: 1.235, unit: 'ms', date: '2026-01-01' },
    { name: 'b', value: 3, unit: 'µs', date: '2026-01-01' },
    { name: 'b', value: 4, unit: 'ms', date: '2026-01-02' },
  ]);
  const elsewhere = withFigures(again, 'live', [row('c', 5)], '2026-01-03', 'arm64', 4);
  expect(elsewhere.live).toMatchObject({ machine: 'arm64', cores: 4, figures: [{ name: 'c' }] });
});
