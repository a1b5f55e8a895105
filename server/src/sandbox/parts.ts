// What a sandbox replaces in a node. Every other deployment runs without it.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Body } from '@sealpost/protocol';
import type { StoreMemory } from '../store/open.ts';
import type { SandboxClock } from './clock.ts';
import type { Faults } from './faults/faults.ts';

export type SandboxParts = {
  /** The time of everything about reports: checks on ingest, retention, freshness, queries. Signatures, limits, /time and the log keep the real clock. */
  readonly reportNowMs: () => number;
  /** One of many nodes in another program: it leaves nothing in the process when it stops. */
  readonly isEmbedded?: true;
  /** Where the store `memory:` is. */
  readonly memory?: StoreMemory;
  /** Applied to everything that the public listener serves. */
  readonly faults?: Pick<Faults, 'attach'>;
  /** What /status.json says of it. */
  readonly status?: () => Body<'SandboxStatus'>;
  /** Answers /sandbox and below on the private listener. */
  readonly control?: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
};

/** Of those that /status.json lists. */
const faultsMax = 20;

/** What /status.json says of a sandbox: its time, and the faults that are active. The explorer shows it in a banner. */
export const sandboxStatus = (clock: SandboxClock, faults: Pick<Faults, 'list'>): Body<'SandboxStatus'> => {
  const { nowMs, speed, paused } = clock.state();
  const active = faults.list().filter(({ state }) => state === 'active');
  return { timeMs: nowMs, speed, paused, faults: active.slice(0, faultsMax).map(({ text }) => text) };
};
