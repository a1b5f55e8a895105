import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readText, root } from '../support/source-tree.ts';
import { rows } from './bars.ts';
import { type Results, readResults } from './results.ts';
import { renderTable, renewDocument } from './table.ts';

test('reliability: docs/reliability.md has the rows and their last results', async () => {
  const renewed = renewDocument(readText('docs/reliability.md'), renderTable(rows, readResults()));
  const hint = 'The rows or their results have changed. Run: npx vitest run tests/bars -u';
  await expect(renewed, hint).toMatchFileSnapshot(join(root, 'docs/reliability.md'));
});

test('reliability: a row shows what was found, what its control lost, and what was not as promised', () => {
  const row = {
    test: 'lives that end',
    files: [],
    control: 'acknowledging early',
    count: { unit: 'lives', reduced: 1, full: 10 },
  };
  const result = {
    count: 10,
    found: { acknowledged: 12_642, lost: 0, 'ms until ready, at most': 812.4 },
    control: { lost: 3 },
    failures: [],
    seconds: 5,
    date: '2026-01-01',
    machine: 'x64, 2 cores, Node 20.20.2',
    commits: ['abc'],
  };
  const cells = (results: Results, key = 'a') => renderTable({ [key]: row }, results).split('\n')[2];
  expect(cells({ a: result })).toBe(
    '| a | lives that end | lives | 1 | 10 | 12,642 acknowledged, 0 lost, at most 812 ms until ready | acknowledging early: 3 lost | 2026-01-01; x64, 2 cores, Node 20.20.2; abc |',
  );
  expect(cells({ a: { ...result, count: 4, failures: ['lost: 1, not at most 0'] } })).toContain(
    '| **lost: 1, not at most 0**. 4 only: 12,642 acknowledged',
  );
  expect(cells({})).toContain('| not run in full yet |');
});

test('reliability: a test that does not exist is a row with the reason', () => {
  const rendered = renderTable({ 9: { test: 'timing', why: 'no quiet machine' } }, {});
  expect(rendered).toContain('| 9 | timing | – | – | – | no quiet machine | – | – |');
});
