// The state of a stream: combines the states of its connections, and reports every change.

/** The state of one connection. */
export type ConnectionState =
  | { readonly phase: 'connecting' }
  | { readonly phase: 'live' }
  | { readonly phase: 'reconnecting'; readonly reason: string; readonly delayMs: number };

/** Reports that a stream cannot deliver because they are past the server's retention. */
export type StreamGap = {
  readonly feedId: string;
  /** First missing second. */
  readonly from: number;
  /** The stream continues with this second. */
  readonly to: number;
};

/**
 * The state of a stream. It is live while each of its feed IDs has a live connection. `origin`: the origin of the connection that changed,
 * with `ha`. `feedIds`: the feed IDs of that connection, if the stream needs several.
 */
export type StreamState =
  | (ConnectionState & { readonly origin?: string; readonly feedIds?: readonly string[] })
  | { readonly phase: 'closed'; readonly error?: Error };

export type StateTracker = ReturnType<typeof createStateTracker>;

/** Begins as connecting. `groups`: the feed IDs that share a connection. */
export function createStateTracker(
  groups: readonly (readonly string[])[],
  onState: ((state: StreamState) => void) | undefined,
) {
  const live = groups.map(() => new Set<string | undefined>());
  let state: StreamState = { phase: 'connecting' };
  return {
    get: (): StreamState => state,
    isClosed: (): boolean => state.phase === 'closed',
    /** A connection of a group has changed. Without an origin and not live, it means all connections of the group. */
    connection: (group: number, origin: string | undefined, next: ConnectionState): void => {
      if (state.phase === 'closed') return;
      const isNextLive = next.phase === 'live';
      if (isNextLive) live[group]?.add(origin);
      else if (origin === undefined) live[group]?.clear();
      else live[group]?.delete(origin);
      const feedIds = groups.length > 1 ? groups[group] : undefined;
      const reported = { ...next, ...(origin !== undefined && { origin }), ...(feedIds !== undefined && { feedIds }) };
      // With several connections, one that opens or closes does not change the state of the stream.
      if (isNextLive === live.every(({ size }) => size > 0)) state = reported;
      onState?.(reported);
    },
    closed: (error: Error | undefined): void => {
      state = error === undefined ? { phase: 'closed' } : { phase: 'closed', error };
      onState?.(state);
    },
  };
}
