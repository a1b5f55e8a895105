// `npm run bar`: reliability tests at their full counts, unattended. Results go to docs/reliability.json, and from there into docs/reliability.md.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../support/source-tree.ts';
import { type Bar, isMissing } from './bar.ts';
import { rows } from './bars.ts';
import { openJournal } from './journal.ts';
import { type BarResult, partOf, readResults, savePart } from './results.ts';
import { runBar } from './run-bar.ts';

const help = `Usage: npm run bar -- KEY… [--count N] [--resume]
       npm run bar -- all [--resume]

Runs reliability tests at their full counts, one after the other, at low priority. What each part found is saved in docs/reliability.json;
then run \`npx vitest run tests/bars -u\` to renew the table in docs/reliability.md.

  --count N   Another count; its result is printed and not saved.
  --resume    Go on after the last whole part of a run that was stopped, here or in another clone that left its result in
              docs/reliability.json, and skip the rows that were run to the end since it began.
  --help      This text.

What a failing part leaves stays in the temporary folder that the message names; its name has the seed.
`;

type Chosen = readonly [key: string, bar: Bar];

const known = Object.entries(rows).flatMap(([key, row]): Chosen[] => (isMissing(row) ? [] : [[key, row]]));

const listKnown = (): string =>
  known
    .map(([key, { test, count }]) => `  ${key.padEnd(8)} ${count?.full ?? 1} ${count?.unit ?? 'run'}: ${test}`)
    .join('\n');

const choose = (keys: readonly string[]): readonly Chosen[] => {
  if (keys.includes('all')) return known;
  const unknown = keys.filter((key) => !known.some(([one]) => one === key));
  if (keys.length > 0 && unknown.length === 0) return known.filter(([key]) => keys.includes(key));
  process.stderr.write(`${unknown.length > 0 ? `No bar is named ${unknown.join(', ')}.\n` : help}\n${listKnown()}\n`);
  process.exit(2);
};

const say = (text: string): void => void process.stderr.write(`${text}\n`);
const commit = (): string =>
  execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim();

const runOne = async ([key, bar]: Chosen, count: number | undefined, isResumed: boolean): Promise<boolean> => {
  const full = bar.count?.full ?? 1;
  const journal = openJournal(join(root, '.bars', `${key}.ndjson`));
  if (!isResumed) journal.clear();
  else if (journal.parts().length === 0) for (const part of partOf(readResults()[key])) journal.add(part);
  say(`${key}: ${bar.test}`);
  const save = (found: BarResult): void => {
    if (count === undefined) savePart(key, found, full);
  };
  try {
    const result = await runBar({ key, bar, count: count ?? full, journal, commit: commit(), say, save });
    process.stdout.write(`${JSON.stringify({ bar: key, ...result })}\n`);
    save(result); // also if its last part was run before
    for (const failure of result.failures) say(`${key}: ${failure}`);
    return result.failures.length === 0;
  } catch (error) {
    say(`${key}: ${(error as Error).message}`); // rejections are errors
    return false;
  }
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: 'string' },
    resume: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  process.stdout.write(`${help}\n${listKnown()}\n`);
  process.exit(0);
}
const failed: string[] = [];
for (const chosen of choose(positionals)) {
  const isOk = await runOne(chosen, values.count === undefined ? undefined : Number(values.count), values.resume);
  if (!isOk) failed.push(chosen[0]);
}
if (failed.length > 0) say(`Failed: ${failed.join(', ')}`);
process.exitCode = failed.length > 0 ? 1 : 0;
