// `npm run bench` runs every workload, `npm run bench -- NAME…` the named ones; `--json` prints one line per figure,
// `--profile` profiles the processes that are measured, `--save` writes the figures to docs/figures.json.
import { benchBlocking } from './blocking.ts';
import { benchChart } from './chart.ts';
import { benchClient } from './client.ts';
import { benchExplorer } from './explorer.ts';
import { saveFigures } from './figures/saved-figures.ts';
import { benchGrowth } from './growth.ts';
import { benchHttp } from './http.ts';
import { benchBackfill, benchIngest } from './ingest.ts';
import { benchLate } from './late.ts';
import { benchLive } from './live.ts';
import type { Measurement } from './measure.ts';
import { benchMirror } from './mirror.ts';
import { benchPeers } from './peers/peers.ts';
import { benchPostgres } from './postgres.ts';
import { benchStart } from './processes/readiness.ts';
import { benchProtocol } from './protocol.ts';
import { benchSimulator } from './simulator.ts';
import { benchStore } from './store.ts';
import { benchWorkers } from './workers.ts';

const workloads: Readonly<Record<string, (args: readonly string[]) => Promise<readonly Measurement[]>>> = {
  protocol: benchProtocol,
  client: benchClient,
  simulator: benchSimulator,
  store: benchStore,
  postgres: benchPostgres,
  ingest: benchIngest,
  late: benchLate,
  backfill: benchBackfill,
  http: benchHttp,
  live: benchLive,
};

/** Workloads that take long, or need more than Node, and run only when named. */
const namedOnly: typeof workloads = {
  growth: benchGrowth,
  start: benchStart,
  blocking: benchBlocking,
  explorer: benchExplorer,
  chart: benchChart,
  mirror: benchMirror,
  workers: benchWorkers,
  peers: benchPeers,
};

const print = (line: string) => process.stdout.write(`${line}\n`);

const help = `Usage: npm run bench -- [NAME…] [--json] [--profile] [--save]

Measures workloads: ${Object.keys(workloads).join(', ')}; only when named also
${Object.keys(namedOnly).join(', ')}. docs/speed.md says what each one measures.

  --json         One line per figure.
  --profile      Writes a CPU profile of each process that is measured to data-profile/, and prints its largest functions.
  --save         Writes the figures to docs/figures.json; then run \`npx vitest run bench/figures -u\` to renew the tables of the docs.
  --only ROW     http, blocking and postgres: some rows.
  --rows A,B     live and workers: some rows.
  --to COUNT     growth and start: the size of the store, such as 10M.
  --dir FOLDER   growth and start: where the store is.
  --keep         growth: leaves the store there.
  --minutes N    chart: how long the page is open.
  --help         This text.
`;

const args = process.argv.slice(2);
if (args.includes('--help')) {
  process.stdout.write(help);
  process.exit();
}
const json = args.includes('--json');
/** Options that have a value: of `growth`, `chart`, `http`, `live` and `postgres`. */
const valued = ['--to', '--dir', '--minutes', '--only', '--rows'];
const wanted = args.filter((arg, i) => !arg.startsWith('--') && !valued.includes(args[i - 1] ?? ''));
const unknown = wanted.filter((name) => !Object.hasOwn({ ...workloads, ...namedOnly }, name));
if (unknown.length > 0) {
  process.stderr.write(
    `There is no workload ${unknown.join(', ')}. There are: ${Object.keys({ ...workloads, ...namedOnly }).join(', ')}.\n`,
  );
  process.exit(2);
}

const chosen = wanted.length === 0 ? workloads : { ...workloads, ...namedOnly };
for (const [name, run] of Object.entries(chosen).filter(([key]) => wanted.length === 0 || wanted.includes(key))) {
  if (!json) print(`\n${name}`);
  const figures = await run(args);
  if (args.includes('--save')) saveFigures('docs/figures.json', name, figures); // npm runs this at the root
  for (const figure of figures) {
    const value = figure.value >= 100 ? figure.value.toFixed(0) : figure.value.toPrecision(3);
    print(
      json
        ? JSON.stringify({ workload: name, ...figure })
        : `  ${figure.name.padEnd(52)} ${value.padStart(10)} ${figure.unit}${figure.note ? `  (${figure.note})` : ''}`,
    );
  }
}
