// The real ingest on a real store in a temporary folder, with a clock that tests set.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SignerSets, Stream } from '@sealpost/protocol';
import { createIngest, type Ingest, type IngestEvent, type IngestRules } from '../../server/src/ingest/ingest.ts';
import { createIngestHandler, type IngestHandlerParts } from '../../server/src/ingest/sources/listener.ts';
import { openVerifier } from '../../server/src/ingest/verifier.ts';
import { type OpsListener, openOpsListener } from '../../server/src/ops/ops.ts';
import { openAdminView } from '../../server/src/store/admin-snapshot.ts';
import { openStore } from '../../server/src/store/open.ts';
import type { RegisteredSignerSet, Store } from '../../server/src/store/store.ts';

export { testStream } from './samples.ts';

export type RunningIngest = {
  readonly folder: string;
  readonly store: Store;
  readonly ingest: Ingest;
  readonly events: readonly IngestEvent[];
  /** Resolves when ingest has seen the change of administrative records. */
  readonly reloaded: () => Promise<void>;
  readonly close: () => Promise<void>;
};

export const act = { atMs: 1_763_200_000_000, actor: 'test', action: 'set up', detail: {} };

/** Registers signer sets in a store. */
export const registerSigners = async (
  { admin }: Pick<Store, 'admin'>,
  signerSets: SignerSets,
  changes: Partial<RegisteredSignerSet> = {},
): Promise<void> => {
  const addedAt = '2025-01-01T00:00:00.000000Z';
  const sets = [...signerSets.values()].map((set) => ({ ...set, addedAt, retiredAt: null, ...changes }));
  const digests = sets.map(({ configDigest }) => configDigest);
  await admin.update('signerSet', digests, () => sets, act);
};

export const defaultRules: IngestRules = {
  retentionDays: 30,
  aheadMaxMs: 5_000,
  linesInFlightMax: 4_096,
  network: 'testnet',
};

/** Opens ingest for these streams and signers, on a store in a folder unless another is opened. */
export const openRunningIngest = async (
  streams: readonly Stream[],
  signerSets: SignerSets,
  nowMs: () => number,
  rules: Partial<IngestRules> = {},
  threads = 1,
  open: (folder: string) => Promise<Store> = (folder) => openStore(folder, 'write'),
): Promise<RunningIngest> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-ingest-'));
  const store = await open(folder);
  await store.admin.update(
    'stream',
    streams.map(({ feedId }) => feedId),
    () => streams,
    act,
  );
  await registerSigners(store, signerSets);
  const view = await openAdminView(store.admin, (event) => {
    if (event.kind === 'adminReloadFailed') throw event.error;
  });
  const events: IngestEvent[] = [];
  const ingest = createIngest({
    store,
    view,
    verifier: openVerifier(threads),
    rules: { ...defaultRules, ...rules },
    nowMs,
    observe: (event) => void events.push(event),
  });
  return {
    folder,
    store,
    ingest,
    events,
    reloaded: () => new Promise((resolve) => void view.onReload(resolve)),
    close: async () => {
      await ingest.close();
      view.close();
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

/** The private listener over ingest, with no probe that could fail. */
export const openPrivateListener = (
  ingest: Ingest,
  token: string,
  changes: Partial<IngestHandlerParts> = {},
): Promise<OpsListener> =>
  openOpsListener({
    host: '127.0.0.1',
    port: 0,
    checks: {},
    metrics: async () => '',
    ingest: createIngestHandler({
      ingest,
      token,
      rejected: () => {},
      resume: () => Promise.reject(new Error('No mirror is part of this test.')),
      stopping: new AbortController().signal,
      ...changes,
    }),
    observe: () => {},
  });
