import { expect, test } from 'vitest';
import type { Equivalent } from './equivalent.ts';
import sample from './sample-report.json' with { type: 'json' };
import { type MutationReport, scoreFile } from './score.ts';

const path = 'protocol/src/feed-id.ts';
const file = sample.files[path];

/** The sample with other outcomes of its killed mutants, in their order. */
const reportWith = (...outcomes: readonly string[]): MutationReport => {
  const others = outcomes.values();
  const mutants = file.mutants.map((mutant) => ({
    ...mutant,
    status: mutant.status === 'Killed' ? (others.next().value ?? 'Killed') : mutant.status,
  }));
  return { files: { [path]: { ...file, mutants } } };
};

const survivor = { line: 16, from: "typeof raw !== 'string'", to: 'false', status: 'Survived' };

test('mutation score: a report that Stryker wrote, with its one survivor by line and text', () => {
  expect(scoreFile(path, sample, [])).toEqual({
    mutants: 6,
    killed: 5,
    timedOut: 0,
    survived: 1,
    notReached: 0,
    equivalent: 0,
    killedPercent: (100 * 5) / 6,
    survivors: [survivor],
    notFound: [],
  });
});

test('mutation score: a mutant that hangs is found; one that no test reaches, or that cannot run, is not', () => {
  const score = scoreFile(path, reportWith('Timeout', 'NoCoverage', 'RuntimeError', 'Ignored'), []);
  expect(score).toMatchObject({ killed: 1, timedOut: 1, survived: 3, notReached: 1, killedPercent: (100 * 2) / 6 });
  expect(score.survivors.map(({ status }) => status).toSorted()).toEqual([
    'Ignored',
    'NoCoverage',
    'RuntimeError',
    'Survived',
  ]);
});

test('mutation score: a mutant that keeps its module from being loaded is found: then no test runs', () => {
  const mutants = file.mutants.map((mutant) => ({ ...mutant, status: 'Survived', testsCompleted: 0 }));
  const report = { files: { [path]: { ...file, mutants } } };
  expect(scoreFile(path, report, [])).toMatchObject({ killed: 6, survived: 0, killedPercent: 100 });
});

test('mutation score: listed mutants count neither way, and one that is killed is out of date', () => {
  const listed: Equivalent = { path, from: survivor.from, to: survivor.to, because: 'for this test' };
  const elsewhere = { ...listed, path: 'protocol/src/query.ts' };
  const killed = { ...listed, to: 'true' };
  expect(scoreFile(path, sample, [listed, elsewhere, killed])).toMatchObject({
    equivalent: 1,
    killedPercent: 100,
    survivors: [],
    notFound: [killed],
  });
});

test('mutation score: a file without mutants is an error', () => {
  expect(() => scoreFile('protocol/src/query.ts', sample, [])).toThrow(
    'Stryker made no mutant of protocol/src/query.ts.',
  );
});
