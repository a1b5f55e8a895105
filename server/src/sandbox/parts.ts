// What a sandbox replaces in a node. Every other deployment runs without it.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Body } from '@sealpost/protocol';
import type { StoreMemory } from '../store/open.ts';
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
