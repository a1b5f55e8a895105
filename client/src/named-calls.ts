// Calls that take feed IDs or names: names are looked up first, within the call's time-out.
import { type CallOptions, withRest } from './request/call.ts';
import { isStreamName, type StreamLookup } from './stream-lookup.ts';

/** Makes both kinds of call. Feed IDs are passed on; the call validates them. */
export const createNamedCalls = ({ one, all }: StreamLookup, monotonicMs: () => number) => {
  /** Looks up first; the call gets the rest of the time-out. */
  const first = async <I, T>(
    lookUp: () => Promise<I>,
    call: CallOptions | undefined,
    act: (ids: I, rest?: CallOptions) => Promise<T>,
  ): Promise<T> => {
    const startedMs = monotonicMs();
    const ids = await lookUp();
    return act(ids, withRest(call, monotonicMs() - startedMs));
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
