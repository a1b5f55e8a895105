// Shares limits between the workers of a node (D63): each worker reports the tokens that it granted and the live connections that it has, and the primary
// passes them on to the others. Tokens that could not be passed on within a second are dropped, as between nodes (D86).
import { createLimitExchange, createSharedLimiters, type SpentByTable } from '../access/limit-exchange.ts';
import { type ShareLimits, tellMaxMs } from '../access/node-limits.ts';
import { bucketsMax } from '../access/rate-limit.ts';
import { createCountExchange, createSharedCounts } from '../live/shared-counts.ts';
import type { SpentLimits } from './messages.ts';

/** Token counts wait this long, so that several become one message. */
const passOnMs = 10;

/** Milliseconds of a clock that all processes of a machine share and nobody sets. */
export const machineMs = (): number => Number(process.hrtime.bigint()) / 1e6;

const noTokens: SpentByTable = { accounts: [], addresses: [] };

/** Without tokens if it was on its way for too long; how many connections there are is true whenever it comes. */
const inTime = (limits: SpentLimits, nowMs: number): SpentLimits =>
  nowMs - limits.sentMs > tellMaxMs ? { ...limits, ...noTokens } : limits;

/** A worker's own share. */
export function createWorkerLimits(nowMs: () => number) {
  const { limiters, drain, receive } = createSharedLimiters();
  const connections = createSharedCounts();
  let drainedMs = nowMs();
  return {
    limiters: { ...limiters, connections },
    /** What has changed since the last call; no tokens if that was too long ago. */
    drain: (): SpentLimits => {
      const sentMs = nowMs();
      const spent = drain();
      const isLate = sentMs - drainedMs > tellMaxMs;
      drainedMs = sentMs;
      return { ...(isLate ? noTokens : spent), connections: connections.drain(), sentMs };
    },
    receive: (limits: SpentLimits): void => {
      receive(inTime(limits, nowMs()));
      connections.receive(limits.connections);
    },
  };
}

/** Stands for the other nodes among the workers, which count from 1. */
const otherNodes = 0;

/** Sends a message to a worker; calls back when it has left. */
type SendLimits = (id: number, limits: SpentLimits, onSent: () => void) => void;

/**
 * Passes on between workers which tokens each of them gave, and how many live connections each has. One message at a time is on its way to each: what
 * is for one that hangs stays in tables of a bounded size (D235).
 */
export function createLimitRelay(nowMs: () => number, send: SendLimits) {
  const accounts = createLimitExchange(bucketsMax.accounts);
  const addresses = createLimitExchange(bucketsMax.addresses);
  const connections = createCountExchange();
  /** Who takes part → since when tokens wait for it; undefined when none do. */
  const waitingSince = new Map<number, number | undefined>();
  /** To whom a message is on its way → is there more for it? */
  const sending = new Map<number, boolean>();
  let isWaiting = false;
  /** The tokens that wait for a member, unless the first of them has waited for too long. */
  const collect = (id: number): SpentByTable => {
    const sinceMs = waitingSince.get(id) ?? nowMs();
    waitingSince.set(id, undefined);
    const spent = { accounts: accounts.collect(id), addresses: addresses.collect(id) };
    return nowMs() - sinceMs > tellMaxMs ? noTokens : spent;
  };
  const passOn = (): void => {
    isWaiting = false;
    for (const id of waitingSince.keys()) {
      if (id === otherNodes) continue; // they collect by themselves
      if (sending.has(id)) sending.set(id, true);
      else passOnTo(id);
    }
  };
  const passOnTo = (id: number): void => {
    const limits = { ...collect(id), connections: connections.collect(id), sentMs: nowMs() };
    if (limits.accounts.length + limits.addresses.length + limits.connections.length === 0) return;
    sending.set(id, false);
    send(id, limits, () => {
      if (sending.get(id)) passOnSoon();
      sending.delete(id);
    });
  };
  const passOnSoon = (): void => {
    if (!isWaiting) setTimeout(passOn, passOnMs).unref();
    isWaiting = true;
  };
  const tellTokens = (from: number, spent: SpentByTable): void => {
    for (const [id, sinceMs] of waitingSince) if (id !== from) waitingSince.set(id, sinceMs ?? nowMs());
    accounts.tell(from, spent.accounts, nowMs());
    addresses.tell(from, spent.addresses, nowMs());
    passOnSoon();
  };
  const join = (id: number): SpentByTable => {
    waitingSince.set(id, undefined);
    return { accounts: accounts.join(id, nowMs()), addresses: addresses.join(id, nowMs()) };
  };
  return {
    /** Lets other nodes take part; returns the way to stop. */
    share: (shareLimits: ShareLimits): (() => Promise<void>) => {
      join(otherNodes);
      return shareLimits({ collect: () => collect(otherNodes), receive: (spent) => tellTokens(otherNodes, spent) });
    },
    /** Adds a worker; returns what it starts with. */
    join: (id: number): SpentLimits => ({ ...join(id), connections: connections.join(id), sentMs: nowMs() }),
    leave: (id: number): void => {
      waitingSince.delete(id);
      sending.delete(id);
      accounts.leave(id);
      addresses.leave(id);
      connections.leave(id);
      passOnSoon();
    },
    /** Takes what a worker reports. */
    tell: (id: number, limits: SpentLimits): void => {
      connections.tell(id, limits.connections);
      tellTokens(id, inTime(limits, nowMs()));
    },
  };
}
