// Calls whose streams are given by feed ID or by name: names are looked up first, within the time of the call.
import type { CallOptions } from './request/call.ts';
import { isStreamName, type StreamLookup } from './stream-lookup.ts';

/** Makes both kinds of call. Feed IDs go straight through, to be checked by the call itself. */
export const createNamedCalls = ({ one, all }: StreamLookup, monotonicMs: () => number) => {
  /** Gives the call what is left of its time. */
  const first = async <I, T>(
    lookUp: () => Promise<I>,
    call: CallOptions | undefined,
    act: (ids: I, rest?: CallOptions) => Promise<T>,
  ): Promise<T> => {
    const startedMs = monotonicMs();
    const ids = await lookUp();
    if (call?.timeoutMs === undefined) return act(ids, call);
    const leftMs = Math.ceil(call.timeoutMs - (monotonicMs() - startedMs));
    return act(ids, { ...call, timeoutMs: Math.max(1, leftMs) });
  };
  return {
    ofOne: async <T>(
      stream: string,
      call: CallOptions | undefined,
      act: (feedId: string, rest?: CallOptions) => Promise<T>,
    ): Promise<T> => (isStreamName(stream) ? first(() => one(stream, call), call, act) : act(stream, call)),
    ofAll: async <T>(
      streams: readonly string[],
      call: CallOptions | undefined,
      act: (feedIds: readonly string[], rest?: CallOptions) => Promise<T>,
    ): Promise<T> =>
      Array.isArray(streams) && streams.some(isStreamName)
        ? first(() => all(streams, call), call, act)
        : act(streams, call),
  };
};
