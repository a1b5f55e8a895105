// What the events of a sandbox change in its catalog and signer sets. Ingest knows of a change when this resolves.
import { formatDate, moveStream, type Stream } from '@sealpost/protocol';
import type { AdminSnapshot, AdminView } from '@sealpost/server/store/admin-snapshot';
import type { Act as AuditedAct, RegisteredSignerSet, Store } from '@sealpost/server/store/store';
import { createNetwork, type Network, type NetworkOptions, rotatedSeed } from '@sealpost/simulator';
import type { SignReport } from './faults/faults.ts';
import type { ScenarioAct } from './scenario/compile.ts';

export type Oracles = {
  /** The network after so many rotations. */
  readonly after: (rotations: number) => Promise<Network>;
  /** Signs as the network of a config digest does. */
  readonly sign: SignReport;
};

/** The keys of a sandbox's oracles, each network made when it is asked for. */
export function createOracles(options: NetworkOptions): Oracles {
  const networks: Network[] = [];
  return {
    after: async (rotations) => {
      while (networks.length <= rotations)
        networks.push(await createNetwork({ ...options, seed: rotatedSeed(options.seed, networks.length) }));
      return networks[rotations] as Network; // just made
    },
    sign: (body, epochAndRound, configDigest) =>
      networks.find(({ signerSet }) => signerSet.configDigest === configDigest)?.sign(body, epochAndRound),
  };
}

type AdministeredAct = Extract<ScenarioAct, { kind: 'rotate' | 'announce' | 'decommission' }>;

/** Does what rotations and decommissioning change, each at its second. Rejects once `stopping` is aborted: the view no longer reloads then. */
export function createAdministration(
  store: Pick<Store, 'admin'>,
  view: AdminView,
  oracles: Oracles,
  stopping?: AbortSignal,
): (act: AdministeredAct) => Promise<void> {
  let rotations = 0;
  const auditOf = ({ second, kind }: AdministeredAct): AuditedAct => ({
    atMs: second * 1_000,
    actor: 'sandbox',
    action: `sandbox ${kind}`,
    detail: {},
  });
  return async (act) => {
    const at = formatDate(act.second * 1_000);
    if (act.kind === 'rotate') {
      const old = (await oracles.after(rotations)).signerSet;
      const { signerSet } = await oracles.after(rotations + 1);
      rotations += 1;
      const added: RegisteredSignerSet = { ...signerSet, addedAt: at, retiredAt: null };
      await store.admin.update(
        'signerSet',
        [old.configDigest, signerSet.configDigest],
        ([current]) => [{ ...(current ?? { ...old, addedAt: at }), retiredAt: at }, added],
        auditOf(act),
      );
      return seenBy(view, ({ signerSets }) => signerSets.has(signerSet.configDigest), stopping);
    }
    const updated = (stream: Stream): Stream => {
      if (stream.status === 'decommissioned') return stream;
      if (act.kind === 'announce') return { ...stream, expectedDecommissionAt: formatDate(act.endSecond * 1_000) };
      return moveStream(stream, 'decommissioned', act.second * 1_000);
    };
    await store.admin.update(
      'stream',
      [...act.feedIds],
      (streams) => streams.map((stream) => updated(stream as Stream)), // registered when the sandbox started
      auditOf(act),
    );
    const isSeen = (stream: Stream | undefined): boolean =>
      stream?.status === 'decommissioned' || (act.kind === 'announce' && stream?.expectedDecommissionAt !== null);
    return seenBy(view, ({ streams }) => act.feedIds.every((feedId) => isSeen(streams.get(feedId))), stopping);
  };
}

/** Resolves once the view has a change, and rejects when the node stops before. */
const seenBy = (view: AdminView, isSeen: (snapshot: AdminSnapshot) => boolean, stopping?: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      stopWatching();
      stopping?.removeEventListener('abort', look);
      settle();
    };
    const look = (): void => {
      if (isSeen(view.current())) end(resolve);
      else if (stopping?.aborted) end(() => reject(new Error('The node stopped before it had reloaded a change.')));
    };
    const stopWatching = view.onReload(look);
    stopping?.addEventListener('abort', look);
    look();
  });
