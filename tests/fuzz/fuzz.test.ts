// Every target with its seeds, its corpus and some mutations, and proof that the fuzzer finds planted bugs. `npm run bar -- 38` runs each for minutes.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { barSeed, countOf, progress, tally, tallyControl } from '../bars/tally.ts';
import { root } from '../support/source-tree.ts';
import { keepInput, readCorpus } from './corpus.ts';
import { createFuzzer } from './fuzzer.ts';
import { minimize } from './minimize.ts';
import { runTarget } from './run-target.ts';
import type { Finding } from './target.ts';
import { targets } from './targets.ts';

const minutes = countOf('38');
/** Mutations in `npm test`: the same ones every time. */
const mutations = 40;
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
    for (let i = 0; i < mutations; i++) findings.push(...[(await fuzzer.next()) ?? []].flat());
    expect(findings.map(describeFinding)).toEqual([]);
    expect(fuzzer.outcomes.size).toBeGreaterThan(1);
  } finally {
    await target.close?.();
  }
});

// A finding does not undo the minutes: it is kept as an input of the test above, so the next part fails until it is fixed.
test.runIf(minutes > 0)('fuzz: every target, for its minutes', { timeout: 100_000_000 }, async () => {
  const left = rows.map(([name]) => name);
  const fuzzNext = async (): Promise<void> => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      const { runs, cpuSeconds, findings } = await runTarget({ name, seed: barSeed(), minutes });
      expect(runs, name).toBeGreaterThan(0);
      tally({
        inputs: runs,
        'minutes of CPU': cpuSeconds / 60,
        'findings, each fixed and a test since': findings.length,
      });
      progress(`fuzz: ${name}: ${runs.toLocaleString('en-US')} inputs, ${left.length} targets to begin`);
      for (const { kind, message, input } of findings) {
        keepInput(name, `found with seed ${barSeed()}: ${kind}, ${message}`, input);
        progress(`fuzz: ${name}: ${kind}: ${message}`);
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, fuzzNext));
});

type Ran = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

const runFuzz = (...args: readonly string[]): Promise<Ran> =>
  new Promise((resolve) => {
    const line = ['--conditions=source', '--import', 'tsx', 'tests/fuzz/main.ts', ...args];
    const child = spawn(process.execPath, line, { cwd: root });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk) => {
      stdout += chunk;
    });
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });

const inFolder = async (act: (folder: string) => Promise<void>): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-fuzz-test-'));
  try {
    await act(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

test('fuzz: a planted bug is found, shortened, kept in the corpus with its seed, and ends with exit code 1', () =>
  inFolder(async (corpus) => {
    const { code, stdout } = await runFuzz(
      'sample-broken',
      '--runs',
      '3000',
      '--seed',
      '1',
      '--json',
      '--corpus',
      corpus,
    );
    expect(code).toBe(1);
    const { target, seed, runs, findings } = JSON.parse(stdout);
    expect([target, seed, runs]).toEqual(['sample-broken', 1, 3_000]);
    expect(findings).toHaveLength(1);
    expect(findings[0].message).toContain('A text is shorter than its length.');
    // Three bytes are the least that has a length.
    expect(findings[0].input).toMatch(/^53.{4}$/);
    const [kept] = readCorpus('sample-broken', corpus);
    expect(kept?.note).toContain('found with seed 1: broken');
    expect(kept?.input.toString('hex')).toBe(findings[0].input);
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
      shorteningTries: 1,
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

test('fuzz: wrong arguments end with exit code 2, and --help lists every target', async () => {
  const [wrong, none, help] = await Promise.all([
    runFuzz('nope'),
    runFuzz('query', '--minutes', 'x'),
    runFuzz('--help'),
  ]);
  expect([wrong.code, none.code, help.code]).toEqual([2, 2, 0]);
  expect(wrong.stderr).toContain('No target is named nope.');
  for (const [name] of rows) expect(help.stdout).toContain(`\n  ${name} `);
});
