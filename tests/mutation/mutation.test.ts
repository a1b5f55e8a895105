// Stryker's mutants of the files that decide who reads what, the branches that their tests take, and the cost of regular expressions.
// `npm test` checks the tables and the scoring only; `npm run bar -- 39` mutates one file per part.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { barCountOf } from '../bars/bars.ts';
import { countOf, firstOf, progress, tally, tallyControl } from '../bars/tally.ts';
import { readText, root } from '../support/source-tree.ts';
import { measureBranches } from './coverage.ts';
import { equivalents } from './equivalent.ts';
import { createCheck, expressionsIn, listExpressions } from './expressions.ts';
import { scoreFile } from './score.ts';
import { mutateFile } from './stryker.ts';
import { type TestedFile, testedFiles } from './tested-files.ts';
import { installTools } from './tools.ts';

const long = { timeout: 100_000_000 };
const first = firstOf();
const count = countOf('39');

test('mutation: the files, their tests and the text of listed mutants exist, and the bar counts each file', () => {
  const missing = testedFiles
    .flatMap(({ path, tests }) => [path, ...tests])
    .filter((path) => !existsSync(join(root, path)));
  expect(missing).toEqual([]);
  const stale = equivalents.filter(({ path, from }) => !readText(path).includes(from));
  expect(stale).toEqual([]);
  expect(barCountOf('39').full).toBe(testedFiles.length);
});

const judgeFile = async (file: TestedFile, tools: string): Promise<void> => {
  const branches = await measureBranches(file, tools);
  const score = scoreFile(file.path, await mutateFile(file, tools, progress), equivalents);
  for (const { line, from, to, status } of score.survivors) progress(`${file.path}:${line} ${status}: ${from} → ${to}`);
  tally({
    mutants: score.mutants,
    killed: score.killed,
    'timed out': score.timedOut,
    survived: score.survived,
    'not reached by a test': score.notReached,
    'equivalent, listed with the reason': score.equivalent,
    '% of the mutants of a file found, at least': score.killedPercent,
    'survivors in signatures, time window and entitlements': file.isStrict ? score.survivors.length : 0,
    '% of the branches of a file taken, at least': branches,
  });
  expect(score.notFound, 'These listed mutants do not survive. Remove them from equivalent.ts.').toEqual([]);
};

test.runIf(count > 0)('mutation: mutants of each file are found by its tests', long, async () => {
  const tools = await installTools();
  for (const file of testedFiles.slice(first, first + count)) await judgeFile(file, tools);
});

test.runIf(count > 0 && first === 0)(
  'mutation: control: tests that assert nothing find few mutants',
  long,
  async () => {
    const path = 'protocol/src/feed-id.ts';
    const file = { path, tests: ['tests/mutation/assertless.fixture.ts'] };
    const { survived } = scoreFile(path, await mutateFile(file, await installTools(), progress), []);
    tallyControl({ 'mutants survived': survived });
  },
);

test('expressions: literals are found in TypeScript and JSX, none is made of text except where listed', async () => {
  const text =
    'const a = (b: string): boolean => /x+/u.test(b as string); const c = <p title={d.replace(/"/g, "")} />;';
  expect(await expressionsIn('a.tsx', text)).toEqual({ literals: [/x+/u, /"/g], made: 0 });
  expect(await expressionsIn('a.ts', 'RegExp(a).test(b) || new RegExp(c).test(b)')).toEqual({
    literals: [],
    made: 2,
  });
  const { expressions, making } = await listExpressions();
  expect(expressions).toContainEqual(expect.objectContaining({ source: '^0x[0-9a-fA-F]{64}$', flags: '' }));
  expect(making).toEqual(['server/src/cli/formats.ts']); // of two literals that repeat nothing
});

test.runIf(count > 0 && first === 0)('expressions: each takes linear time', long, async () => {
  const check = createCheck(await installTools());
  expect(check({ source: '^(a+)+$', flags: '' })).toMatch(/^\/\^\(a\+\)\+\$\/ is vulnerable: exponential/);
  const { expressions } = await listExpressions();
  let vulnerable = 0;
  for (const [i, expression] of expressions.entries()) {
    await setImmediate(); // each takes up to seconds, and vitest asks its workers for a sign of life
    const found = check(expression);
    if (found !== undefined) vulnerable += 1;
    if (found !== undefined) progress(`${found}; ${expression.paths.join(', ')}`);
    if (i % 25 === 24) progress(`${i + 1} of ${expressions.length} regular expressions`);
  }
  tally({ 'regular expressions': expressions.length, 'of these vulnerable': vulnerable });
});
