// Every target with its seeds, its corpus and some mutations, and proof that the fuzzer finds planted bugs. With FULL=1 each runs for minutes, in a
// process of its own; an input that it finds is added to tests/fuzz/corpus, and fails here until the defect is fixed.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isFull, seedOf, tally, tallyControl } from '../support/full-count.ts';
import { keepInput, readCorpus } from './corpus.ts';
import { createFuzzer } from './fuzzer.ts';
import { minimize } from './minimize.ts';
import { runTarget } from './run-target.ts';
import type { Finding } from './target.ts';
import { targets } from './targets.ts';

const minutes = 2;
/** Mutations in `npm test`: the same ones every time. Each one of a backup restores a store. */
const mutationsOf = (name: string): number => (name === 'backup' ? 5 : 20);
/** Six on each core: a minute of all of them takes two on two cores. How much CPU they got is told, and how many inputs that was. */
const atOnce = 6 * availableParallelism();
const rows = Object.entries(targets).filter(([, { isSample }]) => isSample !== true);

const describeFinding = ({ message, input }: Finding) => ({ message, hex: input.toString('hex') });

test.each(rows)('fuzz: %s keeps its invariant for seeds, corpus and mutations', async (name, { open }) => {
  const target = await open();
  try {
    const corpus = readCorpus(name).map(({ input }) => input);
    const fuzzer = createFuzzer(target, { seed: 1, corpus });
    const findings = [...(await fuzzer.runPool())];
    for (let i = 0; i < mutationsOf(name); i++) findings.push(...[(await fuzzer.next()) ?? []].flat());
    expect(findings.map(describeFinding)).toEqual([]);
    expect(fuzzer.outcomes.size).toBeGreaterThan(1);
  } finally {
    await target.close?.();
  }
});

test.runIf(isFull)('fuzz: every target, for its minutes', { timeout: 1_200_000 }, async () => {
  const left = rows.map(([name]) => name);
  const sums = { inputs: 0, 'minutes of CPU': 0 };
  const found: string[] = [];
  const fuzzNext = async (): Promise<void> => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      const { runs, cpuSeconds, findings } = await runTarget({ name, seed: seedOf(), minutes });
      expect(runs, name).toBeGreaterThan(0);
      sums.inputs += runs;
      sums['minutes of CPU'] += cpuSeconds / 60;
      for (const { kind, message, input } of findings) {
        keepInput(name, `found with seed ${seedOf()}: ${kind}, ${message}`, input);
        found.push(`${name}: ${kind}: ${message}`);
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, fuzzNext));
  tally(sums);
  expect(found).toEqual([]);
});

const inFolder = async (act: (folder: string) => Promise<void>): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-fuzz-test-'));
  try {
    await act(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

test('fuzz: a planted bug is found by the process of a target, and shortened', () =>
  inFolder(async (corpus) => {
    const { runs, findings } = await runTarget({ name: 'sample-broken', seed: 1, runs: 3_000, corpus });
    expect(runs).toBe(3_000);
    expect(findings.map(({ message }) => message)).toEqual([
      expect.stringContaining('A text is shorter than its length.'),
    ]);
    // Three bytes are the least that has a length.
    expect(findings[0]?.input.toString('hex')).toMatch(/^53.{4}$/);
    tallyControl({ 'planted bugs found': findings.length });
  }));

test('fuzz: a parser that does not return is found, with an input that hangs it alone', () =>
  inFolder(async (corpus) => {
    const controller = new AbortController();
    const { findings } = await runTarget({
      name: 'sample-hanging',
      seed: 1,
      runs: 5_000,
      corpus,
      hangMs: 500,
      signal: controller.signal,
      onFinding: () => controller.abort(), // one is enough
    });
    expect(findings[0]).toMatchObject({ kind: 'hang', message: 'the parser does not return' });
    expect(findings[0]?.input.includes(0xff)).toBe(true);
  }));

test('fuzz: the same seed gives the same inputs', async () => {
  const inputsOf = async (seed: number): Promise<readonly string[]> => {
    const inputs: string[] = [];
    const target = await (targets.catalog as (typeof targets)[string]).open();
    const fuzzer = createFuzzer(target, { seed, corpus: [], onRun: (input) => inputs.push(input.toString('hex')) });
    for (let i = 0; i < 50; i++) await fuzzer.next();
    return inputs;
  };
  const [first, again, other] = [await inputsOf(1), await inputsOf(1), await inputsOf(2)];
  expect(again).toEqual(first);
  expect(other).not.toEqual(first);
});

test('fuzz: a target with another outcome for each input does not fill the memory', async () => {
  const fuzzer = createFuzzer({ seeds: [], run: (input) => input.toString('hex') }, { seed: 1, corpus: [] });
  for (let i = 0; i < 30_000; i++) await fuzzer.runOne(Buffer.from(`${i}`));
  expect([fuzzer.runs(), fuzzer.outcomes.size]).toEqual([30_000, 20_000]);
});

test('fuzz: an input is shortened to what makes it fail', async () => {
  const fails = (input: Buffer): boolean => input.includes('a') && input.includes('b');
  expect(String(await minimize(Buffer.from('xxxxaxxxxxxxbxx'), fails, 1_000))).toBe('ab');
});

test('fuzz: kept inputs are read back, text and other bytes, each once', () =>
  inFolder(async (corpus) => {
    const inputs = [Buffer.from('text é\n'), Buffer.from([0, 255, 128]), Buffer.from('text é\n'), Buffer.alloc(0)];
    for (const input of inputs) keepInput('one', 'a test', input, corpus);
    expect(readCorpus('one', corpus).map(({ input }) => input.toString('hex'))).toEqual(
      [inputs[0], inputs[1], inputs[3]].map((input) => input?.toString('hex')),
    );
    expect(readFileSync(join(corpus, 'one.ndjson'), 'utf8')).toContain('"text":"text é\\n"');
  }));
