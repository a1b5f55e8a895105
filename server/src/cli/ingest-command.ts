// The command `sealpost ingest`: lines of reports through the door, into a store of this machine or to a running server.
import type { Command } from 'commander';
import type { Settings } from '../config.ts';
import { createIngest } from '../ingest/ingest.ts';
import type { LineResult } from '../ingest/report-line.ts';
import { ingestNdjson } from '../ingest/sources/ndjson.ts';
import { openVerifier } from '../ingest/verifier.ts';
import { openAdminView } from '../store/admin-snapshot.ts';
import { openStore } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { addExamples, addSettings, type RawOptions, readSettings } from './command-options.ts';
import { CommandError, exitCodes, interruptedCode } from './failure.ts';
import { formatBytes } from './formats.ts';
import { openInput, readWholeLines } from './ingest-input.ts';
import { parseTarget, sendLines } from './ingest-remote.ts';
import { createTally, type IngestTally, renderTally } from './ingest-tally.ts';
import { readIngestToken } from './ingest-token.ts';
import { createProgress } from './progress.ts';
import { printJson, type Session } from './session.ts';

const about = `
A line is a report as on the wire, {"fullReport": "0x…", …}, or {"report": {…}} around one. Each is checked for its signatures,
its stream and its times; what is refused goes to quarantine with the reason, and the exit code is 1.

Running it again goes on where it stopped: what is stored is recognised without checking signatures again.
Ctrl-C stops reading, finishes what is under way, and exits with 130.`;

export const addIngestCommand = (program: Command, session: Session): void => {
  const command = program
    .command('ingest')
    .description('Verify signed reports and store them.')
    .argument('<FILE>', 'NDJSON file, or - for standard input')
    .option('--to <url>', 'send the lines to the private listener of a running server instead of writing to the store')
    .option('--json', 'print the result of each line as NDJSON, then {"summary": {…}}')
    .addHelpText('after', about)
    .action((file: string, options: RawOptions) => ingestFile(session, file, options));
  addSettings(command, [
    'store',
    'retentionDays',
    'aheadMaxMs',
    'verifierThreads',
    'linesInFlightMax',
    'network',
    'ingestTokenFile',
  ]);
  addExamples(command, [
    ['A file', 'sealpost ingest reports.ndjson'],
    ['Live from the simulator', 'sealpost-sim --live | sealpost ingest -'],
    ['While a server is running', 'sealpost ingest reports.ndjson --to http://127.0.0.1:7402 --token-file ./token'],
  ]);
};

const ingestFile = async (session: Session, file: string, options: RawOptions): Promise<void> => {
  const settings = await readSettings(session, options);
  const target = typeof options.to === 'string' ? parseTarget(options.to, await readIngestToken(settings)) : undefined;
  const input = await openInput(session, file);
  const signal = session.interruption();
  const tally = createTally();
  const progress = createProgress(session.stderr);
  let read = 0;
  const lines = readWholeLines(input.stream, signal, (bytes) => {
    read = bytes;
  });
  const results = target === undefined ? ingestHere(session, settings.values, lines) : sendLines(target, lines);
  try {
    for await (const batch of results) {
      tally.add(batch);
      if (options.json) await session.write(batch.map((result) => `${JSON.stringify(result)}\n`).join(''));
      const fraction = input.bytes === undefined ? undefined : Math.min(1, read / input.bytes);
      progress.update({ fraction, count: tally.lines(), label: `lines  ${formatBytes(read)}` });
    }
  } catch (error) {
    progress.end();
    if (tally.lines() > 0) await printSummary(session, options, tally, signal);
    throw error;
  }
  progress.end();
  await printSummary(session, options, tally, signal);
};

const printSummary = async (
  session: Session,
  { json }: RawOptions,
  tally: IngestTally,
  signal: AbortSignal,
): Promise<void> => {
  if (tally.refusals.size > 0) session.exitWith(exitCodes.refused);
  if (signal.aborted) session.exitWith(interruptedCode(signal));
  if (json) await printJson(session, { summary: tally.summary(signal.aborted) });
  else await session.write(renderTally(tally, signal.aborted, session.paint));
};

async function* ingestHere(
  session: Session,
  settings: Settings,
  lines: AsyncIterable<Uint8Array>,
): AsyncGenerator<readonly LineResult[]> {
  const store = await openStore(settings.store, 'write');
  try {
    yield* ingestInto(store, session, settings, lines);
  } finally {
    await store.close();
  }
}

async function* ingestInto(
  store: Store,
  { nowMs }: Session,
  settings: Settings,
  lines: AsyncIterable<Uint8Array>,
): AsyncGenerator<readonly LineResult[]> {
  let reloadFailure: unknown;
  const view = await openAdminView(store.admin, (error) => {
    reloadFailure = error;
  });
  const { streams, signerSets } = view.current();
  requireRegistered(streams.size, 'stream', 'stream import catalog.json');
  requireRegistered(signerSets.size, 'signer set', 'signers import signers.json');
  const { retentionDays, aheadMaxMs, linesInFlightMax, verifierThreads, network } = settings;
  const rules = { retentionMs: retentionDays * 86_400_000, aheadMaxMs, linesInFlightMax, network };
  const verifier = openVerifier(verifierThreads);
  const ingest = createIngest({ store, view, verifier, rules, nowMs, observe: () => {} });
  try {
    for await (const results of ingestNdjson(ingest, lines)) {
      yield results;
      if (reloadFailure !== undefined) throw reloadFailure;
    }
  } finally {
    await ingest.close();
    view.close();
  }
}

// Without these every line would be refused, and push what is worth looking at out of quarantine.
const requireRegistered = (count: number, what: string, command: string): void => {
  if (count > 0) return;
  throw new CommandError(
    exitCodes.refused,
    `No ${what} is registered, so every report would be refused. First run: sealpost ${command}.`,
  );
};
