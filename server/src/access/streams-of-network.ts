// The catalog of this deployment's network. Readers see only its streams: one of the other network is as unknown as one that does not
// exist.
import type { FeedId, NetworkType, Stream } from '@sealpost/protocol';
import type { AdminSnapshot, AdminView } from '../store/admin-snapshot.ts';

/** The same view, without the streams of the other network. */
export function onlyStreamsOf(view: AdminView, network: NetworkType): AdminView {
  let from: AdminSnapshot | undefined;
  let shown: AdminSnapshot | undefined;
  return {
    ...view,
    current: () => {
      const current = view.current();
      if (shown === undefined || from !== current)
        shown = { ...current, streams: streamsOf(current.streams.values(), network) };
      from = current;
      return shown;
    },
  };
}

const streamsOf = (streams: Iterable<Stream>, network: NetworkType): ReadonlyMap<FeedId, Stream> => {
  const own = new Map<FeedId, Stream>();
  for (const stream of streams) if (stream.networkType === network) own.set(stream.feedId, stream);
  return own;
};
