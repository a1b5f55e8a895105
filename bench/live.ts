// 1,000 readers of 24 streams, a report of each twice a second: how long until all have it, and what a delivered message costs against the `ws`
// package that sends the same bytes with no logic. One report to 10 readers. What an idle connection takes, with 10,000 of them.
import { cpuOfTree, type Measurement } from './measure.ts';
import {
  askTarget,
  type Delays,
  measureDelays,
  openReaders,
  quantile,
  type RoundRules,
  startLiveTarget,
  stopLiveTarget,
} from './processes/live-readers.ts';

const readers = 1_000;
const rounds = 12;
const idleSockets = 10_000;
/** Those that note the time, in measurements without the others' share of the cores: every tenth. */
const every = 10;
const burst: RoundRules = { readers, every: 1, request: 'send', rounds, roundMs: 500 };

type Bursts = { readonly delays: Delays; readonly cpuPerMessage: number };

const measureBursts = async (mode: 'api' | 'bare', rules: RoundRules): Promise<Bursts> => {
  const target = await startLiveTarget(mode);
  const { pid = 0 } = target.child;
  let cpu = 0;
  const delays = await measureDelays(target, {
    ...rules,
    onMeasured: (when) => {
      cpu = cpuOfTree(pid) - (when === 'begun' ? 0 : cpu);
    },
  });
  await stopLiveTarget(target);
  return { delays, cpuPerMessage: cpu / (rules.rounds * rules.readers * target.feedIds.length) };
};

/** Bytes per socket that does nothing, of the heap and of buffers. */
const measureIdle = async (mode: 'api' | 'bare'): Promise<number> => {
  const target = await startLiveTarget(mode);
  // The first connections bring what there is once in a process.
  const first = await openReaders(target, 100, () => {});
  const before = await askTarget<number>(target, 'memory');
  const sockets = await openReaders(target, idleSockets, () => {});
  const after = await askTarget<number>(target, 'memory');
  for (const socket of [...first, ...sockets]) socket.destroy();
  await stopLiveTarget(target);
  return (after - before) / idleSockets;
};

const delayRows = (name: string, delays: Float64Array, note: string): readonly Measurement[] => [
  { name: `${name}, p50`, value: quantile(delays, 0.5), unit: 'ms', note },
  { name: `${name}, p99`, value: quantile(delays, 0.99), unit: 'ms', note },
];

const everyReaderNote = 'all readers read at once, on the same cores';
const everyTenthNote = 'every tenth reader is timed, the others read later';

/** Delays of bursts through a node, timed at all readers and at a tenth of them. */
const benchBursts = async (): Promise<readonly Measurement[]> => {
  const all = await measureBursts('api', burst);
  const tenth = await measureBursts('api', { ...burst, every });
  return [
    ...delayRows('append begun → delivered', all.delays.sinceBegun, everyReaderNote),
    ...delayRows('stored → delivered', all.delays.sinceStored, everyReaderNote),
    ...delayRows('append begun → delivered, readers apart', tenth.delays.sinceBegun, everyTenthNote),
    ...delayRows('stored → delivered, readers apart', tenth.delays.sinceStored, everyTenthNote),
    { name: 'CPU per delivered message', value: all.cpuPerMessage, unit: 'µs', note: 'storing it included' },
  ];
};

const benchOne = async (): Promise<readonly Measurement[]> => {
  const rules: RoundRules = { readers: 10, every: 1, request: 'sendOne', rounds: 300, roundMs: 10 };
  const { delays } = await measureBursts('api', rules);
  const note = '10 readers, one report at a time';
  return [
    ...delayRows('one report, append begun → delivered', delays.sinceBegun, note),
    ...delayRows('one report, stored → delivered', delays.sinceStored, note),
  ];
};

const benchIdle = async (): Promise<readonly Measurement[]> => {
  const [bare, api] = [await measureIdle('bare'), await measureIdle('api')];
  const note = `${idleSockets} sockets`;
  return [
    { name: 'memory of an idle socket', value: api / 1_024, unit: 'KiB', note },
    { name: 'memory of an idle socket beyond bare ws', value: (api - bare) / 1_024, unit: 'KiB', note },
  ];
};

const benchBare = async (): Promise<readonly Measurement[]> => {
  const { delays, cpuPerMessage } = await measureBursts('bare', burst);
  return [
    { name: 'sent → delivered by bare ws, p99', value: quantile(delays.sinceBegun, 0.99), unit: 'ms' },
    { name: 'CPU per message of bare ws', value: cpuPerMessage, unit: 'µs' },
  ];
};

const parts = { bursts: benchBursts, one: benchOne, idle: benchIdle, bare: benchBare };

/** `--rows bursts,one,idle,bare` picks parts. */
export const benchLive = async (args: readonly string[]): Promise<readonly Measurement[]> => {
  const chosen = args[args.indexOf('--rows') + 1]?.split(',') ?? [];
  const figures: Measurement[] = [];
  for (const [name, measure] of Object.entries(parts))
    if (!args.includes('--rows') || chosen.includes(name)) figures.push(...(await measure()));
  return figures;
};
