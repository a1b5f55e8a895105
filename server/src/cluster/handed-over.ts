// Closes connections that the primary handed to a worker which ended before it took them: Node keeps those open and answers them never, so that a client waits
// until it gives up, and each costs a descriptor for good.
import type { ChildProcess } from 'node:child_process';

/** What Node's cluster sends with a new connection, and what a worker replies: on every release that we run on, although undocumented. */
type ClusterMessage = {
  readonly cmd?: unknown;
  readonly act?: unknown;
  readonly seq?: number;
  readonly ack?: number;
};
type Handle = { readonly close?: () => void };

/** Watches the connections that a worker is given, from its start. Returns what closes those that it has not taken; to be called when it has ended. */
export const watchHandedOver = (child: ChildProcess): (() => void) => {
  const waiting = new Map<number | undefined, Handle>();
  const send = child.send.bind(child);
  child.send = (message: unknown, handle?: unknown, ...rest: unknown[]): boolean => {
    const { cmd, act, seq } = Object(message) as ClusterMessage; // ours have none of these
    if (cmd === 'NODE_CLUSTER' && act === 'newconn' && handle) waiting.set(seq, handle as Handle); // the connection
    return (send as (...all: unknown[]) => boolean)(message, handle, ...rest); // its overloads are one function
  };
  child.on('internalMessage', ({ ack }: ClusterMessage) => waiting.delete(ack)); // taken, or given to another one
  return () => {
    for (const handle of waiting.values()) handle.close?.();
    waiting.clear();
  };
};
