// A sandbox inside of another program. One process, no threads with a store in memory, nothing
// on standard output. Time stands still but for steps.
import { randomUUID } from 'node:crypto';
import {
  type FeedId,
  formatDate,
  type ReportJson,
  type SignerSet,
  type SignerSetsJson,
  type Stream,
  toSignerSetsJson,
} from '@sealpost/protocol';
import { resolveSettings, type Settings } from '@sealpost/server/config/config';
import type { LineResult } from '@sealpost/server/ingest/report-line';
import { type Node, openNode } from '@sealpost/server/node/node';
import { createStoreMemory } from '@sealpost/server/store/open';
import type { Act, RegisteredSignerSet } from '@sealpost/server/store/store';
import {
  accountRecord,
  deriveCredentials,
  type PlannedAccount,
  readAccounts,
  type SandboxAccounts,
} from '../accounts.ts';
import { createAdministration, createOracles } from '../administration.ts';
import { createSandboxClock, type SandboxClock } from '../clock.ts';
import { createFaults, type Faults, type SignReport } from '../faults/faults.ts';
import { type PushedReport, pushReport } from '../push/push.ts';
import type { ScenarioAct } from '../scenario/compile.ts';
import { isFaultAct, problemOf, setFaults } from '../scenario-runner.ts';

export type { SandboxAccounts } from '../accounts.ts';
export { clockMaxMs, stepMaxMs } from '../clock.ts';
export type { ListedFault, TrackedFault } from '../faults/decisions.ts';
export { durationMs } from '../faults/fields.ts';
export type { Fault } from '../faults/kinds.ts';
export { FaultError } from '../faults/parse.ts';
export type { LoggedRequest } from '../faults/request-log.ts';
export { checkPushOptions, type Moment, type PushOptions, parseMoment } from '../push/body.ts';
export { SandboxError, unexpected } from '../push/errors.ts';
export type { Price } from '../push/prices.ts';
export { inRow, readSeries, rowError, type SeriesRow } from '../push/series.ts';
export { durationSeconds } from '../scenario/event-table.ts';
export { parseScenario, type Scenario, ScenarioError } from '../scenario/parse.ts';
export { compileScenario } from '../scenario-runner.ts';
export type { Faults, LineResult, SandboxClock, ScenarioAct, SignReport };

export type EmbeddedOptions = {
  readonly streams: readonly Stream[];
  readonly signerSet: SignerSet;
  /** Decides with the requests which of them are faulted. */
  readonly seed: string;
  /** Oracles, and how many of them may fail. */
  readonly size: { readonly n: number; readonly f: number };
  /** Decides the credentials; random ones when absent. */
  readonly credentialsSeed?: string | undefined;
  /** Sandbox time at the start, in ms. */
  readonly startMs: number;
  readonly sign: SignReport;
  /** A folder for an LMDB store; in memory when absent. */
  readonly folder?: string | undefined;
  /** Per account and route; 0 is no limit. */
  readonly requestsPerSecond: number;
  readonly origins: readonly string[];
  /** Further accounts. */
  readonly accounts: SandboxAccounts;
};

export type EmbeddedSandbox = {
  readonly url: string;
  /** The private listener: probes and metrics. */
  readonly opsUrl: string;
  readonly userId: string;
  readonly secret: string;
  readonly accounts: readonly PlannedAccount[];
  readonly clock: SandboxClock;
  readonly faults: Faults;
  /** Every signer set so far. */
  readonly signers: () => SignerSetsJson;
  /** Ingests lines as a sender would; resolves once every one is readable, and handed to the live connections of its stream. */
  readonly ingest: (lines: readonly string[]) => Promise<readonly LineResult[]>;
  /** Signs a report and ingests it. */
  readonly push: (report: Omit<PushedReport, 'nowMs'>) => Promise<ReportJson>;
  /** Does what a scenario has for a second. A fault that cannot be set is a problem, no failure. */
  readonly perform: (act: ScenarioAct) => Promise<void>;
  /** Events of the scenario that could not happen. */
  readonly problems: () => readonly string[];
  /** Live connections to a stream. */
  readonly subscribers: (feedId: FeedId) => number;
  /** Ends connections, listeners and timers. */
  readonly close: () => Promise<void>;
};

/** Starts a sandbox; it serves when this resolves, and nothing is left if this rejects. */
export async function openEmbeddedSandbox(options: EmbeddedOptions): Promise<EmbeddedSandbox> {
  const { seed, credentialsSeed = randomUUID(), startMs, sign, folder } = options;
  const clock = createSandboxClock({ startMs, paused: true, monotonicMs: () => performance.now() });
  const faults = createFaults({ seed, nowMs: clock.nowMs, sign });
  const { userId, secret, key } = deriveCredentials(credentialsSeed);
  const node = await openNode({
    settings: settingsOf(options, key),
    version: 'sandbox',
    ingestToken: undefined,
    logTo: { write: () => {} },
    hooks: {
      isEmbedded: true,
      reportNowMs: clock.nowMs,
      wrap: faults.wrap,
      ...(folder === undefined && { memory: createStoreMemory() }),
    },
  });
  const account = { userId, secret };
  const accounts = readAccounts(options.accounts, options.streams, credentialsSeed);
  try {
    await register(node, { ...options, accounts }, key, account);
  } catch (error) {
    await node.stop('the sandbox failed to start');
    throw error;
  }
  const { ingest, store, view } = node.write;
  const closing = new AbortController();
  const ingestLines: EmbeddedSandbox['ingest'] = async (lines) => {
    const results = await ingest.submit(lines, 1);
    await delivered(node, await store.reports.position(), closing.signal);
    return results;
  };
  const pushParts = { newestMs: store.reports.newestMs, view, sign, ingest: ingestLines };
  const administer = createAdministration(store, view, createOracles({ seed, ...options.size }), closing.signal);
  const perform = async (act: ScenarioAct): Promise<void> => {
    if (isFaultAct(act)) setFaults(faults, act, act.second * 1_000);
    else if (act.kind === 'push') await pushReport(pushParts, { ...act.report, nowMs: act.second * 1_000 });
    // Time stands still here, so that speed and pause mean nothing.
    else if (act.kind !== 'speed' && act.kind !== 'pause') await administer(act);
  };
  const problems: string[] = [];
  return {
    url: node.url,
    opsUrl: node.opsUrl,
    ...account,
    accounts,
    clock,
    faults,
    signers: () => toSignerSetsJson(view.current().signerSets),
    ingest: ingestLines,
    push: (report) => pushReport(pushParts, { ...report, nowMs: clock.nowMs() }),
    perform: (act) => perform(act).catch((error: unknown) => void problems.push(problemOf(act, error))),
    problems: () => [...problems],
    subscribers: (feedId) => [...(node.live?.opened() ?? [])].filter(({ feedIds }) => feedIds.includes(feedId)).length,
    close: () => {
      closing.abort();
      return node.stop('closed');
    },
  };
}

/** How long open requests and connections have to end. */
const drainMs = 20;
/** Whatever the clock says: a report may be pushed for any time, also one in the future. */
const aheadMaxMs = 86_400_000;

/** The store is read again after a failure every 200 ms. */
const deliveryMaxMs = 5_000;

const settingsOf = ({ folder, requestsPerSecond, origins }: EmbeddedOptions, key: string): Settings => {
  const flags = {
    store: folder === undefined ? 'memory:' : `lmdb:${folder}`,
    key,
    listen: '127.0.0.1:0',
    opsListen: '127.0.0.1:0',
    explorer: 'off',
    verifierThreads: '0',
    drainMs: String(drainMs),
    aheadMaxMs: String(aheadMaxMs),
    logLevel: 'silent',
    requestsPerSecond: String(requestsPerSecond),
    anonymousRequestsPerSecond: '0',
    publicRequestsPerSecond: '0',
    failuresPerSecond: '0',
    ...(origins.length > 0 && { origins: origins.join(',') }),
  };
  return resolveSettings({ flags, env: {}, file: undefined }).values;
};

const register = async (
  { write: { store, view } }: Node,
  {
    streams,
    signerSet,
    startMs,
    accounts,
  }: Omit<EmbeddedOptions, 'accounts'> & { accounts: readonly PlannedAccount[] },
  key: string,
  { userId, secret }: { readonly userId: string; readonly secret: string },
): Promise<void> => {
  const createdAt = formatDate(startMs);
  const signers: RegisteredSignerSet = { ...signerSet, addedAt: createdAt, retiredAt: null };
  const entitlements = ['public', ...streams.map(({ feedId }) => `feed:${feedId}`)];
  const own = { name: 'sandbox', userId, secret, entitlements };
  const act: Act = { atMs: startMs, actor: 'sandbox', action: 'sandbox set-up', detail: {} };
  const isKnown = new Promise<void>((resolve) => {
    const stop = view.onReload(() => {
      if (!view.current().accounts.has(userId)) return;
      stop();
      resolve();
    });
  });
  await store.admin.put(
    [
      ...streams.map((stream) => ({ kind: 'stream' as const, key: stream.feedId, record: stream })),
      { kind: 'signerSet', key: signers.configDigest, record: signers },
      ...[own, ...accounts].map((account) => ({
        kind: 'account' as const,
        key: account.userId,
        record: accountRecord(account, key, startMs),
      })),
    ],
    act,
  );
  await isKnown;
};

/** Resolves once live connections were handed everything up to a position. */
const delivered = async ({ live }: Node, position: number, closing: AbortSignal): Promise<void> => {
  const deadlineMs = performance.now() + deliveryMaxMs;
  while (live !== undefined && live.position() < position && !closing.aborted) {
    if (performance.now() > deadlineMs) throw new Error(`A report was not delivered within ${deliveryMaxMs} ms.`);
    await new Promise((resolve) => setImmediate(resolve));
  }
};
