// `npm run bench` runs the workloads that need only Node, `npm run bench -- NAME…` the named ones.
import { benchExplorer } from './explorer.ts';
import { benchHttp } from './http.ts';
import { benchBackfill, benchIngest } from './ingest.ts';
import { benchLive } from './live.ts';
import type { Measurement } from './measure.ts';
import { benchPeers } from './peers/peers.ts';
import { benchPostgres } from './postgres.ts';
import { benchStore } from './store.ts';

const workloads: Readonly<Record<string, (args: readonly string[]) => Promise<readonly Measurement[]>>> = {
  store: benchStore,
  ingest: benchIngest,
  backfill: benchBackfill,
  http: benchHttp,
  live: benchLive,
  postgres: benchPostgres,
  explorer: benchExplorer,
  peers: benchPeers,
};
const withoutName = ['store', 'ingest', 'backfill', 'http', 'live'];

const print = (line: string) => process.stdout.write(`${line}\n`);

const help = `Usage: npm run bench -- [NAME…] [--profile]

Measures workloads: ${Object.keys(workloads).join(', ')}. docs/speed.md says what each one measures.

  --profile      Leaves CPU profiles of the processes that are measured in data-profile/; browsers open them.
  --only ROW     http, postgres and peers: some rows.
  --rows A,B     live: some rows.
  --help         This text.
`;

const args = process.argv.slice(2);
if (args.includes('--help')) {
  process.stdout.write(help);
  process.exit();
}
const wanted = args.filter((arg, i) => !arg.startsWith('--') && !['--only', '--rows'].includes(args[i - 1] ?? ''));
for (const name of wanted.length === 0 ? withoutName : wanted) {
  const run = workloads[name];
  if (run === undefined)
    throw new Error(`There is no workload ${name}. There are: ${Object.keys(workloads).join(', ')}.`);
  print(`\n${name}`);
  for (const figure of await run(args)) {
    const value = figure.value >= 100 ? figure.value.toFixed(0) : figure.value.toPrecision(3);
    print(`  ${figure.name.padEnd(52)} ${value.padStart(10)} ${figure.unit}${figure.note ? `  (${figure.note})` : ''}`);
  }
}
