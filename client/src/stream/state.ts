// The state of a stream: combines the states of its connections, and reports every change.

/** Where one connection stands. */
export type ConnectionState =
  | { readonly phase: 'connecting' }
  | { readonly phase: 'live' }
  | { readonly phase: 'reconnecting'; readonly reason: string; readonly delayMs: number };

/** What a stream can no longer deliver. */
export type StreamGap = {
  readonly feedId: string;
  /** Reports observed from this second on… */
  readonly from: number;
  /** …to before this second are older than the server keeps. */
  readonly to: number;
};

/**
 * Where a stream stands. It is live while each of its feed ids is carried by a live connection. `origin` names the connection that changed,
 * where there is one for each origin; `feedIds` what it carries, where they take more than one connection.
 */
export type StreamState =
  | (ConnectionState & { readonly origin?: string; readonly feedIds?: readonly string[] })
  | { readonly phase: 'closed'; readonly error?: Error };

export type StateTeller = ReturnType<typeof createStateTeller>;

/** Begins as connecting. `groups`: the feed ids that share a connection. */
export const createStateTeller = (
  groups: readonly (readonly string[])[],
  onState: ((state: StreamState) => void) | undefined,
) => {
  const live = groups.map(() => new Set<string | undefined>());
  let state: StreamState = { phase: 'connecting' };
  return {
    get: (): StreamState => state,
    isClosed: (): boolean => state.phase === 'closed',
    /** A connection of a group has changed; one that is not live and has no origin stands for all of the group. */
    connection: (group: number, origin: string | undefined, next: ConnectionState): void => {
      if (state.phase === 'closed') return;
      const isNextLive = next.phase === 'live';
      if (isNextLive) live[group]?.add(origin);
      else if (origin === undefined) live[group]?.clear();
      else live[group]?.delete(origin);
      const feedIds = groups.length > 1 ? groups[group] : undefined;
      const told = { ...next, ...(origin !== undefined && { origin }), ...(feedIds !== undefined && { feedIds }) };
      // One of several that comes or goes changes nothing for the whole.
      if (isNextLive === live.every(({ size }) => size > 0)) state = told;
      onState?.(told);
    },
    closed: (error: Error | undefined): void => {
      state = error === undefined ? { phase: 'closed' } : { phase: 'closed', error };
      onState?.(state);
    },
  };
};
