// Ingests lines of reports from any source, into a local store or through a running server; counts, shows and summarizes results.
import type { ResolvedSettings, SettingName, Settings } from '@sealpost/server/config/config';
import { createIngest, type IngestSender } from '@sealpost/server/ingest/ingest';
import type { LineResult } from '@sealpost/server/ingest/report-line';
import { ingestNdjson } from '@sealpost/server/ingest/sources/ndjson';
import { openVerifier } from '@sealpost/server/ingest/verifier';
import { openAdminView } from '@sealpost/server/store/admin-snapshot';
import { openStore } from '@sealpost/server/store/open';
import type { Store } from '@sealpost/server/store/store';
import type { RawOptions } from '../../command-options.ts';
import { CommandError, exitCodes, interruptedCode } from '../../failure.ts';
import { toJsonLine } from '../../formats.ts';
import { type Advance, createProgress } from '../../progress.ts';
import { printJson, type Session, withoutReader } from '../../session.ts';
import { storeExists } from '../../store-access.ts';
import { parseIngestUrl, readIngestToken, sendLines } from './remote.ts';
import { createTally, type IngestTally, renderTally } from './tally.ts';

/** The settings of every command that takes reports in. */
export const ingestSettings: readonly SettingName[] = [
  'store',
  'retentionDays',
  'aheadMaxMs',
  'verifierThreads',
  'linesInFlightMax',
  'network',
  'ingestTokenFile',
];

/** Sends lines where the options say: to the server of `--to`, or into the store. Results come in the order of the lines. */
export const ingestLines = async (
  session: Session,
  settings: ResolvedSettings,
  { to }: RawOptions,
  lines: AsyncIterable<Uint8Array>,
): Promise<AsyncIterable<readonly LineResult[]>> =>
  typeof to === 'string'
    ? sendLines(parseIngestUrl(to, await readIngestToken(settings)), lines)
    : ingestHere(session, settings.values, lines);

/** Shows results as they come, and sums them up at the end, also when it is a failure. */
export async function reportResults(
  given: Session,
  options: RawOptions,
  results: AsyncIterable<readonly LineResult[]>,
  signal: AbortSignal,
  advance: (count: number) => Advance,
): Promise<void> {
  const session = withoutReader(given); // a report is not left out because nobody looks
  const tally = createTally();
  const progress = createProgress(session.stderr);
  try {
    for await (const batch of results) {
      tally.add(batch);
      if (options.json) await session.write(batch.map((result) => toJsonLine(result)).join(''));
      progress.update(advance(tally.lines()));
    }
  } catch (error) {
    progress.end();
    if (tally.lines() > 0) await printSummary(session, options, tally, signal);
    throw error;
  }
  progress.end();
  await printSummary(session, options, tally, signal);
}

const printSummary = async (
  session: Session,
  { json }: RawOptions,
  tally: IngestTally,
  signal: AbortSignal,
): Promise<void> => {
  if (tally.refusals.size > 0) session.exitWith(exitCodes.refused);
  if (signal.aborted) session.exitWith(interruptedCode(signal));
  if (json) await printJson(session, { summary: tally.summary(signal.aborted) });
  else await session.write(await session.hint(renderTally(tally, signal.aborted, session.paint)));
};

async function* ingestHere(
  session: Session,
  settings: Settings,
  lines: AsyncIterable<Uint8Array>,
): AsyncGenerator<readonly LineResult[]> {
  await requireStore(settings.store);
  const store = await openStore(settings.store, 'write', { isCommand: true });
  try {
    yield* ingestInto(store, session, settings, lines);
  } finally {
    await store.close();
  }
}

/** Refuses a store that is not there before opening it for writing makes an empty one. Any other failure shows there. */
const requireStore = async (url: string): Promise<void> => {
  if (!(await storeExists(url).catch(() => true))) requireRegistered(0, ...streamsFirst);
};

async function* ingestInto(
  store: Store,
  session: Session,
  settings: Settings,
  lines: AsyncIterable<Uint8Array>,
): AsyncGenerator<readonly LineResult[]> {
  const ingest = await openLocalIngest(store, session, settings);
  try {
    yield* ingest.take(lines);
  } finally {
    await ingest.close();
  }
}

/** Ingest into a store of this machine, for one sender after the other. */
export type LocalIngest = {
  /** Takes lines; results come in their order. Fails while streams and signer sets cannot be reloaded after a change. */
  readonly take: (lines: AsyncIterable<Uint8Array>, sender?: IngestSender) => AsyncGenerator<readonly LineResult[]>;
  readonly close: () => Promise<void>;
};

/** Opens ingest into a store that someone else closes. At least one stream and one signer set must be registered. */
export async function openLocalIngest(
  store: Store,
  { nowMs }: Pick<Session, 'nowMs'>,
  settings: Settings,
): Promise<LocalIngest> {
  let reloadFailure: unknown;
  const view = await openAdminView(store.admin, (event) => {
    reloadFailure = event.kind === 'adminReloadFailed' ? event.error : undefined;
  });
  try {
    const { streams, signerSets } = view.current();
    requireRegistered(streams.size, ...streamsFirst);
    requireRegistered(signerSets.size, ...signersFirst);
  } catch (error) {
    view.close();
    throw error;
  }
  const verifier = openVerifier(settings.verifierThreads);
  const ingest = createIngest({ store, view, verifier, rules: settings, nowMs, observe: () => {} });
  return {
    take: async function* (lines, sender) {
      for await (const results of ingestNdjson(ingest, lines, undefined, sender)) {
        yield results;
        if (reloadFailure !== undefined) throw reloadFailure;
      }
    },
    close: async () => {
      await ingest.close();
      view.close();
    },
  };
}

/** What `requireRegistered` says of signer sets. */
export const signersFirst = ['signer set', 'signers import signers.json'] as const;
const streamsFirst = ['stream', 'stream import catalog.json'] as const;

/** Without these every line would be rejected, and displace useful lines from quarantine. */
export function requireRegistered(count: number, what: string, command: string): void {
  if (count > 0) return;
  throw new CommandError(
    exitCodes.refused,
    `No ${what} is registered, so every report would be rejected. First run: sealpost ${command}.`,
  );
}
