import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeFullReport, decodeReportBody, headlinePriceOf } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { root } from '../../tests/support/source-tree.ts';
import { durationSeconds } from './scenario/event-table.ts';
import { type SampleRunner, startSampleRunner } from './scenario-runner.fixture.ts';

const folder = join(root, 'examples/scenarios');
const run = async (file: string): Promise<SampleRunner> => {
  const scenario = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  const seconds = scenario.events.map(({ at }: { at: string }) => durationSeconds(at) ?? 0);
  const sample = await startSampleRunner(scenario);
  await sample.advance(Math.max(...seconds) + 5);
  return sample;
};
const pricesOf = ({ lines }: SampleRunner): readonly number[] =>
  lines.map(
    (line) => Number(headlinePriceOf(decodeReportBody(decodeFullReport(JSON.parse(line).fullReport).body))) / 1e18,
  );

/** What happens by the last event of each, besides that all of them happen. */
const expectations: Readonly<Record<string, (sample: SampleRunner) => void>> = {
  'bad-day.json': ({ runner }) => expect(runner.state()).toMatchObject({ speed: 10, faults: [] }),
  'closing-bell.json': ({ lines }) => expect(lines.length).toBeGreaterThan(100),
  'crash.json': ({ lines }) => expect(lines.length).toBe(250),
  'depeg.json': (sample) => expect(Math.min(...pricesOf(sample))).toBeLessThan(0.97),
  'frozen-price.json': (sample) => expect(new Set(pricesOf(sample).slice(119)).size).toBe(1),
  'outage.json': ({ lines }) => expect(lines.length).toBe(2 * 605 - 2 * 60 - 30 - 6),
  'rotation.json': ({ acts }) => expect(acts.map(({ kind }) => kind)).toEqual(['announce', 'rotate', 'rotate']),
};

test.each(readdirSync(folder))('examples: the scenario %s runs to its last event', async (file) => {
  const sample = await run(file);
  const { scenario, problems, reports } = sample.runner.state();
  expect([scenario.done, problems, reports.rejected]).toEqual([scenario.events, [], 0]);
  expectations[file]?.(sample);
  expect(expectations[file]).toBeDefined();
  await sample.runner.stop();
});
