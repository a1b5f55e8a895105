// The command `sealpost simulate`: writes signed reports of a simulated oracle network to files, or live ones to stdout.
import { formatDecimal } from '@sealpost/client';
import { decodeFullReport, decodeReportBody, networkTypes, type ReportJson, reportSchemas } from '@sealpost/protocol';
import { makeFolder } from '@sealpost/server/runtime/files';
import { createStreams, followClock, type HistoryFiles, historyFileNames, writeHistory } from '@sealpost/simulator';
import type { PlainCommand } from '../../command.ts';
import { interruptedCode } from '../../failure.ts';
import { formatNumberOf } from '../../formats.ts';
import { createProgress } from '../../progress.ts';
import { printJson, type Session } from '../../session.ts';
import { timeForms } from '../../time-arguments.ts';
import { parseSimulateOptions, type SimulateOptions, type SimulateSettings } from './arguments.ts';

export const simulateCommand: PlainCommand = {
  name: 'simulate',
  summary: 'Simulate an oracle network: seeded, deterministic price reports with real signatures.',
  options: [
    { flag: '--from <time>', help: 'first observation' },
    { flag: '--to <time>', help: 'last observation, included (default: now)' },
    { flag: '--out <dir>', help: `directory for ${Object.values(historyFileNames).join(', ')}` },
    { flag: '--live', help: 'write reports to stdout in real time, instead of a time range to files' },
    { flag: '--seed <text>', help: 'the same seed gives the same keys, prices and bytes', default: 'sealpost' },
    {
      flag: '--network <type>',
      help: 'testnet (4 oracles, 2 sign) or mainnet (16 oracles, 6 sign)',
      default: 'testnet',
      choices: networkTypes,
    },
    { flag: '-n, --oracles <count>', help: 'oracles in the network' },
    { flag: '-f, --faulty <count>', help: 'number of oracles that may fail; f + 1 sign each report' },
    { flag: '--streams <list>', help: 'only these streams, by pair, name or feed ID, separated by commas' },
    { flag: '--gap <feed,from,to>', help: 'omit observations; repeatable', repeatable: true },
    {
      flag: '--late <feed,from,to,delay>',
      help: 'deliver observations this many seconds late; repeatable',
      repeatable: true,
    },
    {
      flag: '--workers <count>',
      help: 'signing threads; 0 signs on the main thread (default: one per core)',
    },
    { flag: '--json', help: 'print the summary as one line of JSON' },
  ],
  about: `Times are ${timeForms}.`,
  examples: [
    [
      'Last hour of every stream; the same seed and times give the same bytes',
      'sealpost simulate --seed demo --from -1h --out ./hour',
    ],
    [
      'Two streams, one with a gap of a minute',
      'sealpost simulate --from -10m --out ./gap --streams BTC/USD-Streams-CexPrice,LINK/USD --gap LINK/USD,-5m,-4m',
    ],
    ['Live, for another program', 'sealpost simulate --live --streams BTC/USD-Streams-CexPrice | head -5'],
  ],
  run: ({ session, options }) => {
    const given = options as SimulateOptions; // as the rows above say
    const settings = parseSimulateOptions(given, Math.floor(session.nowMs() / 1_000));
    return settings.mode === 'live' ? followLive(session, settings) : writeSpan(session, settings);
  },
};

type SpanSettings = Extract<SimulateSettings, { mode: 'span' }>;
type LiveSettings = Extract<SimulateSettings, { mode: 'live' }>;

const writeSpan = async (session: Session, settings: SpanSettings): Promise<void> => {
  const { simulation, span, out, workers } = settings;
  const { from, to } = span;
  const signal = session.interruption();
  const startedMs = performance.now();
  const progress = createProgress(session.stderr);
  let count = 0;
  makeFolder(out);
  try {
    const written = await writeHistory({ ...simulation, ...span, workers }, out, signal, (batch) => {
      count += batch.length;
      const reached = batch.at(-1)?.deliveredAt ?? from;
      progress.update({ fraction: Math.min(1, (reached - from + 1) / (to - from + 1)), count, label: 'reports' });
    }).finally(progress.end);
    const elapsedMs = Math.round(performance.now() - startedMs);
    const { seed, networkType } = simulation;
    if (settings.json) return await printJson(session, { out, networkType, seed, ...span, ...written, elapsedMs });
    const reports = formatNumberOf(written.reports, 'report');
    await session.write(`${reports} of ${describeStreams(written)} in ${out}, ${elapsedMs / 1_000} s.\n`);
  } catch (error) {
    if (!signal.aborted) throw error;
    session.stderr.write('Interrupted. Nothing was written.\n');
    session.exitWith(interruptedCode(signal));
  }
};

/** Streams with reports, and those in the catalog without: decommissioned before the span. */
const describeStreams = ({ streams, streamsWithReports }: HistoryFiles): string => {
  const others = streams - streamsWithReports;
  const rest = others === 0 ? '' : ` (${formatNumberOf(others, 'more stream')} in the catalog without reports)`;
  return `${formatNumberOf(streamsWithReports, 'stream')}${rest}`;
};

const followLive = async (session: Session, { simulation }: LiveSettings): Promise<void> => {
  const streams = createStreams(simulation.networkType ?? 'testnet').map(({ stream }) => stream);
  const names = new Map<string, string>(streams.map(({ feedId, name }) => [feedId, name]));
  const nameWidth = Math.max(...streams.map(({ name }) => name.length));
  for await (const { report } of followClock({ ...simulation, signal: session.interruption() })) {
    const text = session.isTerminal
      ? renderLiveReport(report, names.get(report.feedID) ?? report.feedID, nameWidth)
      : JSON.stringify(report);
    await session.write(`${text}\n`);
  }
};

/** A live report as one line for a terminal: time, name of its stream, price, bid and ask if it has them, signatures. */
const renderLiveReport = (report: ReportJson, name: string, nameWidth: number): string => {
  const { body: encoded, signatures } = decodeFullReport(report.fullReport);
  const body = decodeReportBody(encoded);
  const values = new Map(Object.entries(body));
  const headline: { price: string; bid?: string; ask?: string } = reportSchemas[body.version].headline;
  const show = (label: string, field: string | undefined) =>
    field === undefined ? '' : `  ${label} ${formatDecimal(BigInt(values.get(field) ?? 0))}`;
  const time = new Date(report.observationsTimestamp * 1_000).toISOString().slice(11, 19);
  const prices = `${show(headline.price, headline.price)}${show('bid', headline.bid)}${show('ask', headline.ask)}`;
  return `${time}  ${name.padEnd(nameWidth)}${prices}  ${signatures.length} signatures`;
};
