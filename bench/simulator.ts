// How fast one core signs a simulated network's reports, start-up apart.
import { createSimulation } from '@sealpost/simulator';
import { cpuPerCall, type Measurement, perSecond } from './measure.ts';

export const benchSimulator = async (): Promise<readonly Measurement[]> => {
  const rows = [
    ['reports signed per core, 2 signatures', 'testnet'],
    ['reports signed per core, 6 signatures', 'mainnet'],
  ] as const;
  const figures: Measurement[] = [];
  for (const [name, networkType] of rows) {
    const { deliverAt } = await createSimulation({ seed: 'bench', networkType });
    let second = 1_763_200_000;
    let reports = 0;
    let calls = 0;
    const cpu = cpuPerCall(() => {
      for (const _ of deliverAt(second++)) reports += 1;
      calls += 1;
    }, 3_000);
    figures.push({ name, value: perSecond(cpu / (reports / calls)), unit: 'reports/s' });
  }
  return figures;
};
