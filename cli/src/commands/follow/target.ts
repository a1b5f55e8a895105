// Where a mirror stores its reports: a store of this machine, or a running server by its private listener. Both say where each stream resumes.
import type { ResolvedSettings, Settings } from '@sealpost/server/config/config';
import { createResumingSender, isPassingFailure } from '@sealpost/server/ingest/ingest';
import { type MirrorPlace, type MirrorRequest, resumeMirror } from '@sealpost/server/ingest/mirror';
import type { LineResult } from '@sealpost/server/ingest/report-line';
import { openStore } from '@sealpost/server/store/open';
import { type Store, StoreError } from '@sealpost/server/store/store';
import type { RawOptions } from '../../command-options.ts';
import { CommandError, exitCodes } from '../../failure.ts';
import type { Session } from '../../session.ts';
import { storeExists, withStore } from '../../store-access.ts';
import { type LocalIngest, openLocalIngest, requireRegistered, signersFirst } from '../ingest/lines.ts';
import { askPlaces, parseIngestUrl, readIngestToken, sendLines, TransientError } from '../ingest/remote.ts';
import type { Administer } from './catalog.ts';

export type MirrorTarget = {
  /** Where each stream resumes. */
  readonly resume: (request: MirrorRequest, signal: AbortSignal) => Promise<readonly MirrorPlace[]>;
  /** Stores lines; results come in their order, once they are durable. Aborting the signal breaks off. */
  readonly send: (lines: AsyncIterable<Uint8Array>, signal: AbortSignal) => AsyncIterable<readonly LineResult[]>;
  /** Changes streams and signer sets. */
  readonly administer: Administer;
  readonly close: () => Promise<void>;
};

/** Opens the target that the options name. A store that is not there is made once there is something to register in it. */
export async function openMirrorTarget(
  session: Session,
  settings: ResolvedSettings,
  { to, adopt, catalog, signers }: RawOptions,
): Promise<MirrorTarget> {
  if (typeof to === 'string') return openRemote(settings, to);
  const { values } = settings;
  const open = async () => createLocalTarget(await openStore(values.store, 'write'), session, values);
  if (await storeExists(values.store)) return open();
  return createNewTarget(() => {
    if (adopt !== true && catalog === undefined) throw noStreams();
    if (adopt !== true && signers === undefined) requireRegistered(0, ...signersFirst);
    return open();
  });
}

export const noStreams = (): CommandError =>
  new CommandError(
    exitCodes.refused,
    'No stream is registered at the target, so every report would be rejected. First run: sealpost stream import catalog.json, or use --adopt or --catalog.',
  );

/** A target that is opened, and so made, when it is first used. A mirror that fails before leaves nothing behind. */
const createNewTarget = (open: () => Promise<MirrorTarget>): MirrorTarget => {
  let opening: Promise<MirrorTarget> | undefined;
  const opened = async (): Promise<MirrorTarget> => {
    opening ??= open().catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };
  return {
    resume: async (request, signal) => (await opened()).resume(request, signal),
    send: async function* (lines, signal) {
      yield* (await opened()).send(lines, signal);
    },
    administer: async (act) => (await opened()).administer(act),
    close: async () => (await opening)?.close(),
  };
};

const openRemote = async (settings: ResolvedSettings, to: string): Promise<MirrorTarget> => {
  const target = parseIngestUrl(to, await readIngestToken(settings));
  return {
    resume: (request, signal) => askPlaces(target, request, signal),
    send: (lines, signal) => sendLines(target, lines, signal, { isResuming: true }),
    administer: (act) =>
      withStore(settings.values.store, ({ admin }) => act(admin)).catch((error: unknown) => {
        if (!(error instanceof StoreError) || error.code !== 'store_not_found') return retryLater(error);
        throw new CommandError(
          exitCodes.refused,
          'With --to, streams and signer sets are registered in the server’s store. Set it with --store, or import them there with sealpost stream import and sealpost signers import.',
          { cause: error },
        );
      }),
    close: async () => {},
  };
};

/** A store of this machine as a target; closing the target closes the store. */
export function createLocalTarget(
  store: Store,
  session: Pick<Session, 'nowMs' | 'actor'>,
  values: Settings,
): MirrorTarget {
  let ingest: LocalIngest | undefined;
  return {
    resume: async (request) => {
      const context = { store, nowMs: session.nowMs(), retentionDays: values.retentionDays, actor: session.actor() };
      return resumeMirror(context, request).catch(retryLater);
    },
    send: async function* (lines) {
      try {
        ingest ??= await openLocalIngest(store, session, values);
        yield* ingest.take(lines, createResumingSender());
      } catch (error) {
        retryLater(error);
      }
    },
    administer: (act) => act(store.admin).catch(retryLater),
    close: async () => {
      await ingest?.close();
      await store.close();
    },
  };
}

const retryLater = (error: unknown): never => {
  if (isPassingFailure(error)) throw new TransientError(error.message, '');
  throw error;
};
