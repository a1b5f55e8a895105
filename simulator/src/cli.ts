// The command `sealpost-sim`: writes a span of signed reports to files, or follows the clock. Runs when it is loaded.
// Exit codes: 0 done, 1 failed, 2 wrong arguments, 128 + the signal's number when a span was interrupted.
import { constants } from 'node:os';
import { pipeline } from 'node:stream/promises';
import { Command, CommanderError } from 'commander';
import { parseSettings, type RawOptions, type Settings, UsageError } from './arguments.ts';
import { fileNames, type Written, writeHistory } from './history-files.ts';
import { followClock } from './live.ts';
import { renderReport } from './live-lines.ts';
import { createProgress, formatNumberOf } from './progress.ts';
import { createStreams } from './streams.ts';

const examples = `
Times are Unix seconds, RFC 3339 dates, now, or relative to now: -2d, -1h, -30m, +45s.

Examples:
  The last hour of every stream; the same seed and span give the same bytes on every machine:
    sealpost-sim --seed demo --from -1h --out ./hour
  The last ten minutes of two streams, one of them with a gap of a minute:
    sealpost-sim --from -10m --out ./gap --streams BTC/USD-Streams-CexPrice,LINK/USD --gap LINK/USD,-5m,-4m
  Reports as their second comes, for another program:
    sealpost-sim --live --streams BTC/USD-Streams-CexPrice | head -5`;

const collect = (value: string, previous: readonly string[] = []): readonly string[] => [...previous, value];

const createCommand = (): Command =>
  new Command('sealpost-sim')
    .description('An oracle network in a box: seeded, deterministic, really signed price reports.')
    .option('--from <time>', 'first observation')
    .option('--to <time>', 'last observation, inclusive (default: now)')
    .option('--out <dir>', `directory for ${Object.values(fileNames).join(', ')}`)
    .option('--live', 'instead of a span: write each report to stdout as its second comes')
    .option('--seed <text>', 'the same seed gives the same keys, prices and bytes', 'sealpost')
    .option('--network <type>', 'testnet (4 oracles, 2 sign) or mainnet (16 oracles, 6 sign)', 'testnet')
    .option('-n, --oracles <count>', 'oracles in the network')
    .option('-f, --faulty <count>', 'oracles that may fail; one more than these sign each report')
    .option('--streams <list>', 'only these streams, by pair, name or feed ID, separated by commas')
    .option('--gap <feed,from,to>', 'observations that are never made; repeatable', collect)
    .option('--late <feed,from,to,delay>', 'observations delivered that many seconds late; repeatable', collect)
    .option('--workers <count>', 'signing threads; 0 signs on the main one (default: one per core)')
    .option('--json', 'print the summary as one line of JSON')
    .addHelpText('after', examples)
    .allowExcessArguments(false)
    .exitOverride();

type SpanSettings = Extract<Settings, { mode: 'span' }>;
type LiveSettings = Extract<Settings, { mode: 'live' }>;

const writeSpan = async (settings: SpanSettings, signal: AbortSignal): Promise<void> => {
  const { simulation, span, out, workers } = settings;
  const startedMs = performance.now();
  const progress = createProgress(process.stderr, span);
  let reports = 0;
  const written = await writeHistory({ ...simulation, ...span, workers }, out, signal, (batch) => {
    reports += batch.length;
    progress.update(reports, batch.at(-1)?.deliveredAt ?? span.from);
  }).finally(progress.end);
  const elapsedMs = Math.round(performance.now() - startedMs);
  const { seed, networkType } = simulation;
  const summary = settings.json
    ? JSON.stringify({ out, networkType, seed, ...span, ...written, elapsedMs })
    : `${formatNumberOf(written.reports, 'report')} of ${describeStreams(written)} in ${out}, ${elapsedMs / 1_000} s.`;
  await pipeline([`${summary}\n`], process.stdout, { end: false });
};

/** Streams with reports, and those that are in the catalog only: decommissioned before the span. */
const describeStreams = ({ streams, streamsWithReports }: Written): string => {
  const others = streams - streamsWithReports;
  const rest = others === 0 ? '' : ` (${formatNumberOf(others, 'more stream')} in the catalog without reports)`;
  return `${formatNumberOf(streamsWithReports, 'stream')}${rest}`;
};

const follow = async ({ simulation }: LiveSettings, signal: AbortSignal): Promise<void> => {
  const streams = createStreams(simulation.networkType ?? 'testnet').map(({ stream }) => stream);
  const names = new Map<string, string>(streams.map(({ feedId, name }) => [feedId, name]));
  const nameWidth = Math.max(...streams.map(({ name }) => name.length));
  const lines = async function* () {
    for await (const { report } of followClock({ ...simulation, signal })) {
      const text = process.stdout.isTTY
        ? renderReport(report, names.get(report.feedID) ?? report.feedID, nameWidth)
        : JSON.stringify(report);
      yield `${text}\n`;
    }
  };
  await pipeline(lines, process.stdout, { end: false });
};

const run = async (args: readonly string[], signal: AbortSignal): Promise<void> => {
  const raw = createCommand().parse(args, { from: 'user' }).opts<RawOptions>();
  const settings = parseSettings(raw, Math.floor(Date.now() / 1_000));
  return settings.mode === 'live' ? follow(settings, signal) : writeSpan(settings, signal);
};

const exitCodeOf = (cause: unknown, signal: AbortSignal): number => {
  if (cause instanceof CommanderError) return cause.exitCode === 0 ? 0 : 2; // it has printed help or its own message
  if (cause instanceof Error && 'code' in cause && cause.code === 'EPIPE') return 0; // the reader has left
  if (signal.aborted) {
    process.stderr.write('Interrupted, nothing was written.\n');
    return 128 + constants.signals[signal.reason as NodeJS.Signals]; // the reason is set below
  }
  process.stderr.write(`error: ${cause instanceof Error ? cause.message : String(cause)}\n`);
  return cause instanceof UsageError ? 2 : 1;
};

const interruption = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => interruption.abort(name));
try {
  await run(process.argv.slice(2), interruption.signal);
} catch (cause) {
  process.exitCode = exitCodeOf(cause, interruption.signal);
}
