// Threads of a running ingest that die: what they had is checked again or rejected by name, and ingest resumes.
import type { Worker } from 'node:worker_threads';
import { toReportJson } from '@sealpost/protocol';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openRunningIngest, type RunningIngest, testStream } from '../../../tests/support/running-ingest.ts';
import { createSignedReports, secondStream } from '../../../tests/support/signed-reports.ts';
import type { StoreError } from '../store/store.ts';
import { openVerifier } from './verifier.ts';

const { report, signerSets } = await createSignedReports();
const strangers = await createSignedReports('strangers');
const stream = secondStream(1);
const now = 1_763_200_000;
const lineOf = (signed: typeof report, second: number): string => {
  const { fullReport, ...window } = signed(stream, now + second, now + second);
  return JSON.stringify(toReportJson(stream, window, `0x${Buffer.from(fullReport).toString('hex')}`));
};
const lines = (from: number, count: number) => Array.from({ length: count }, (_, i) => lineOf(report, from + i));

let running: RunningIngest;
let verifiers: Worker[];
const noteThread = (thread: Worker) => void verifiers.push(thread);

beforeEach(async () => {
  verifiers = [];
  process.on('worker', noteThread);
  running = await openRunningIngest([testStream(stream)], signerSets, () => (now + 1_000) * 1_000);
  verifiers.shift(); // the one that writes is started first
});
afterEach(async () => {
  process.off('worker', noteThread);
  await running.close();
});

/** Submits as a sender does: what fails for want of a thread is sent again. */
const submitUntilAnswered = async (batch: readonly string[]): Promise<readonly string[]> => {
  for (;;) {
    try {
      return (await running.ingest.submit(batch, 1)).map(({ result }) => result);
    } catch (error) {
      expect((error as StoreError).code).toBe('store_unavailable');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
};

test.each<[string, (thread: Worker) => unknown]>([
  ['is ended', (thread) => thread.terminate()],
  ['throws', (thread) => thread.postMessage(null)],
])(
  'verifier: a thread of a running ingest that %s is replaced, and ingest resumes',
  async (_, end) => {
    expect(await submitUntilAnswered(lines(0, 1))).toEqual(['stored']);
    const [first] = verifiers as [Worker];
    const died = new Promise((resolve) => first.once('exit', resolve));
    first.once('error', () => {}); // its own; the channel listens too
    const underWay = running.ingest.submit(lines(1, 100), 1).catch((error: unknown) => error);
    void end(first);
    await died;
    // Checked by the next thread, or rejected by name: nothing of it is taken for verified.
    const outcome = await underWay;
    if (outcome instanceof Error) expect(outcome).toMatchObject({ name: 'StoreError', code: 'store_unavailable' });
    const again = await submitUntilAnswered(lines(1, 100));
    expect(again.every((result) => result === 'stored' || result === 'duplicate')).toBe(true);
    expect(verifiers.length).toBeGreaterThan(1);
    // The new thread has the signer sets: it lets in these signers, and no others.
    expect(await submitUntilAnswered([lineOf(strangers.report, 200), ...lines(201, 1)])).toEqual(['refused', 'stored']);
    expect((await running.store.reports.page(stream, now, 1_000)).reports).toHaveLength(102);
  },
  300_000,
);

test('verifier: without threads, this process gives the same verdicts, and other work runs between chunks', async () => {
  const fullReports = [...lines(0, 80), lineOf(strangers.report, 80), '{"fullReport":"0x,0x"}'].map(
    (line) => JSON.parse(line).fullReport,
  );
  const verdicts = await Promise.all(
    [0, 1].map(async (threads) => {
      const verifier = openVerifier(threads);
      verifier.use(signerSets);
      await verifier.ready();
      let turns = 0;
      const counting = setInterval(() => (turns += 1), 0);
      const found = await verifier.verify(fullReports);
      clearInterval(counting);
      await verifier.close();
      expect(turns).toBeGreaterThan(0);
      return found;
    }),
  );
  expect(verdicts[0]).toEqual(verdicts[1]);
  expect(verdicts[0]?.map(({ code }) => code).slice(79)).toEqual([
    undefined,
    'unknown_config_digest',
    'malformed_report',
  ]);
});

test('verifier: closing while its threads load or verify never ends the process', async () => {
  const fullReports = lines(0, 64).map((line) => JSON.parse(line).fullReport);
  for (let round = 0; round < 30; round++) {
    const verifier = openVerifier(2);
    verifier.use(signerSets);
    if (round % 2 === 0) await verifier.ready();
    const underWay = verifier.verify(fullReports).catch((error: unknown) => error);
    await new Promise((resolve) => setTimeout(resolve, 4 * round)); // a thread loads for 100 ms
    await verifier.close();
    const verdicts = await underWay;
    if (verdicts instanceof Error) expect(verdicts).toMatchObject({ code: 'store_unavailable' });
    else expect(verdicts).toHaveLength(64);
  }
});

test('verifier: one thread starts at once, the others with the first reports, all with the signer sets', async () => {
  await new Promise(setImmediate); // Node announces a thread in the next tick: that of the running ingest
  const before = verifiers.length;
  const verifier = openVerifier(3);
  verifier.use(signerSets);
  await verifier.ready();
  expect(verifiers.length - before).toBe(1);
  const fullReports = lines(0, 6).map((line) => JSON.parse(line).fullReport);
  const verdicts = await verifier.verify(fullReports);
  expect(verifiers.length - before).toBe(3);
  expect(verdicts.map(({ verified }) => verified?.feedId)).toEqual(fullReports.map(() => stream));
  await verifier.close();
});
