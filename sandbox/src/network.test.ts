import type { NewReport } from '@sealpost/server/store/store';
import { createScenarioSimulation, type Effect, parseSpecName } from '@sealpost/simulator';
import { expect, test } from 'vitest';
import { openNetwork } from './network.ts';

test('network: history is the same bytes, whichever thread signs a slice of it', async () => {
  const startSecond = Date.parse('2026-03-13T14:30:00Z') / 1_000;
  const from = startSecond - 31;
  const effects: readonly Effect[] = [{ kind: 'rotation', from: startSecond - 15 }];
  const options = { seed: 'test', streams: [parseSpecName('ETH/USD')], startSecond, effects };
  // As if a second had so many reports that each is a slice: enough for others to help.
  const network = await openNetwork(options, 1_000);
  const signed: NewReport[] = [];
  const append = async (reports: readonly NewReport[]) => void signed.push(...reports);
  await network.signHistory({ from, to: startSecond }, append, new AbortController().signal);
  await network.close();
  const simulation = await createScenarioSimulation(options);
  const expected = Array.from({ length: 32 }, (_, i) => [...simulation.deliverAt(from + i)]).flat();
  expect(signed.map(({ fullReport }) => `0x${Buffer.from(fullReport).toString('hex')}`)).toEqual(
    expected.map(({ report }) => report.fullReport),
  );
});
