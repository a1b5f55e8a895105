// A whole node without workers and with 1, 2 and 4 of them: `latest` over 16 connections, and live reports to 1,000 readers. On the two cores that the
// senders of the load share.
import { latestPath, load, repeat } from './http.ts';
import { benchBursts } from './live.ts';
import { cpuOfTree, type Measurement } from './measure.ts';
import { askTarget, startLiveTarget, stopLiveTarget } from './processes/live-readers.ts';

const workerCounts = [0, 1, 2, 4];
const requests = 10_000;
const rounds = 3;

const nameOf = (workers: number): string => ['no workers', '1 worker'][workers] ?? `${workers} workers`;

const benchLatest = async (workers: number): Promise<readonly Measurement[]> => {
  const target = await startLiveTarget('api', workers);
  const { pid = 0 } = target.child;
  await askTarget(target, 'send');
  const path = latestPath(target.feedIds[0] ?? '');
  await load(target, repeat(target, path, requests)); // for the compilers
  const [cpuBefore, startedMs] = [cpuOfTree(pid), performance.now()];
  for (let round = 0; round < rounds; round++) await load(target, repeat(target, path, requests));
  const seconds = (performance.now() - startedMs) / 1_000;
  const cpu = (cpuOfTree(pid) - cpuBefore) / (requests * rounds);
  await stopLiveTarget(target);
  return [
    { name: 'latest, requests per second', value: (requests * rounds) / seconds, unit: '/s' },
    { name: 'latest, CPU of all processes', value: cpu, unit: 'µs' },
  ];
};

const parts = { latest: benchLatest, live: benchBursts };

/** `--rows latest,live` picks parts. */
export const benchWorkers = async (args: readonly string[]): Promise<readonly Measurement[]> => {
  const chosen = args[args.indexOf('--rows') + 1]?.split(',') ?? [];
  const figures: Measurement[] = [];
  for (const [part, measure] of Object.entries(parts))
    for (const workers of !args.includes('--rows') || chosen.includes(part) ? workerCounts : [])
      for (const figure of await measure(workers))
        figures.push({ ...figure, name: `${nameOf(workers)}: ${figure.name}` });
  return figures;
};
