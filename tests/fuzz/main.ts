// `npm run fuzz`: mutated inputs for every parser of outside bytes, for as long as wanted. Findings are kept in tests/fuzz/corpus.
import { parseArgs } from 'node:util';
import { corpusFile, keepInput } from './corpus.ts';
import { runTarget, type TargetResult } from './run-target.ts';
import { nameOf } from './target.ts';
import { targets } from './targets.ts';

const listed = Object.entries(targets).filter(([, { isSample }]) => isSample !== true);

const help = `Usage: npm run fuzz -- TARGET… [--minutes N | --runs N] [--seed N] [--keep N] [--json]
       npm run fuzz -- all --minutes 10

Runs mutated inputs through parsers of outside bytes, one target after the other, each in a process of its own at low priority. An input that
breaks its target's invariant, hangs, crashes or takes too much memory is shortened and added to the target's file in tests/fuzz/corpus, which
\`npm test\` runs: fix the defect, and the input stays as its test. Ctrl-C ends the run and prints the summary.

  --minutes N   Minutes of each target; 1 by default.
  --runs N      Inputs of each target instead.
  --seed N      The same seed and number of inputs give the same inputs; random by default.
  --keep N      Add up to N inputs that reached something new to the corpus, the shortest first.
  --corpus DIR  Another folder for the corpus.
  --json        One line of JSON for each target on standard output.
  --help        This text.

Exit codes: 0 nothing found, 1 findings, 2 wrong arguments, 130 interrupted.

Targets:
${listed.map(([name, { about }]) => `  ${name.padEnd(16)} ${about}`).join('\n')}
`;

const fail = (text: string): never => {
  process.stderr.write(`${text} See npm run fuzz -- --help.\n`);
  process.exit(2);
};

const readOptions = () => {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        minutes: { type: 'string' },
        runs: { type: 'string' },
        seed: { type: 'string' },
        keep: { type: 'string', default: '0' },
        corpus: { type: 'string' },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    return fail((error as Error).message); // parseArgs throws errors
  }
};

const readNumber = (name: string, raw: string): number => {
  const value = Number(raw);
  return raw.trim() !== '' && value >= 0 && Number.isFinite(value)
    ? value
    : fail(`--${name} is ${raw}, expected a number.`);
};

const { values, positionals } = readOptions();
if (values.help) {
  process.stdout.write(help);
  process.exit(0);
}
const names = positionals.includes('all') ? listed.map(([name]) => name) : positionals;
const unknown = names.filter((name) => !Object.hasOwn(targets, name));
if (unknown.length > 0)
  fail(`No target is named ${unknown.join(', ')}. Targets: ${listed.map(([name]) => name).join(', ')}.`);
if (names.length === 0) fail('Name a target, or all.');
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 32) : readNumber('seed', values.seed);
const length =
  values.runs === undefined
    ? { minutes: readNumber('minutes', values.minutes ?? '1') }
    : { runs: readNumber('runs', values.runs) };
const keep = readNumber('keep', values.keep);

const interruption = new AbortController();
process.on('SIGINT', () => interruption.abort());
process.on('SIGTERM', () => interruption.abort());

const count = (value: number): string => Math.round(value).toLocaleString('en-US');
const isTerminal = process.stderr.isTTY === true;
let shownAt = 0;

const showProgress = (name: string, runs: number, outcomes: number, seconds: number, findings: number): void => {
  if (!isTerminal && seconds - shownAt < 15 && seconds >= shownAt) return;
  shownAt = seconds;
  const left =
    length.minutes === undefined ? (seconds / Math.max(1, runs)) * (length.runs - runs) : length.minutes * 60 - seconds;
  const others = names.slice(names.indexOf(name) + 1).length;
  const rest = others === 0 ? '' : `, then ${others} more targets`;
  const text = `${name}: ${count(runs)} inputs, ${count(runs / Math.max(1, seconds))}/s, ${outcomes} outcomes, ${findings} findings, ${count(Math.max(0, left))} s left${rest}`;
  process.stderr.write(isTerminal ? `\r\x1b[2K${text}` : `${text}\n`);
};

const say = (text: string): void => void process.stderr.write(`${isTerminal ? '\r\x1b[2K' : ''}${text}\n`);

const fuzzOne = async (name: string): Promise<TargetResult> => {
  let findings = 0;
  const result = await runTarget({
    name,
    seed,
    ...length,
    corpus: values.corpus,
    signal: interruption.signal,
    onProgress: ({ runs, outcomes, seconds }) => showProgress(name, runs, outcomes, seconds, findings),
    onFinding: ({ kind, message, input }) => {
      findings += 1;
      keepInput(name, `found with seed ${seed}: ${kind}, ${message}`, input, values.corpus);
      say(
        `${name}: ${kind}: ${message}\n  ${input.length} bytes, ${nameOf(input)}, added to ${corpusFile(name, values.corpus)}`,
      );
    },
  });
  for (const input of result.novel.slice(0, keep)) keepInput(name, `new with seed ${seed}`, input, values.corpus);
  return result;
};

const toJson = ({ name, runs, seconds, outcomes, findings }: TargetResult) => ({
  target: name,
  seed,
  runs,
  seconds: Math.round(seconds),
  outcomes,
  findings: findings.map(({ kind, message, input }) => ({ kind, message, input: input.toString('hex') })),
});

const results: TargetResult[] = [];
for (const name of names) {
  if (interruption.signal.aborted) break;
  const result = await fuzzOne(name);
  results.push(result);
  if (values.json) process.stdout.write(`${JSON.stringify(toJson(result))}\n`);
}
say(interruption.signal.aborted ? 'Interrupted.' : 'Done.');
if (!values.json)
  for (const { name, runs, seconds, outcomes, findings } of results)
    process.stdout.write(
      `${name.padEnd(16)} ${count(runs).padStart(13)} inputs in ${count(seconds)} s, ${outcomes} outcomes, ${findings.length} findings, seed ${seed}\n`,
    );
const found = results.some(({ findings }) => findings.length > 0);
process.exit(found ? 1 : interruption.signal.aborted ? 130 : 0);
