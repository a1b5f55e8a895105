// Reads the server's status for the status page, and compares its clock with this machine's.
import type { Client } from '@sealpost/client';
import { type Body, skewMaxMs } from '@sealpost/protocol';

export type ServerStatus = {
  readonly status: Body<'Status'>;
  /** The server's clock minus this machine's, and the error bound of that difference; milliseconds. */
  readonly clock: { readonly aheadMs: number; readonly errorMs: number };
};

/** Time-out of each request. */
const timeoutMs = 4_000;

/** Reads the status once. Assumes that the server read its clock halfway between request and response. */
export async function readStatus(
  client: Pick<Client, 'status' | 'time'>,
  nowMs: () => number,
  signal: AbortSignal,
): Promise<ServerStatus> {
  const { status } = await client.status({ signal, timeoutMs });
  const askedMs = nowMs();
  const { serverTimeMs } = await client.time({ signal, timeoutMs });
  const tookMs = nowMs() - askedMs;
  return {
    status,
    clock: { aheadMs: Math.round(serverTimeMs - askedMs - tookMs / 2), errorMs: Math.ceil(tookMs / 2) },
  };
}

/** The difference in words, and whether it breaks signing. */
export function explainClock({ aheadMs, errorMs }: ServerStatus['clock']): {
  readonly text: string;
  readonly isBad: boolean;
} {
  const size = Math.abs(aheadMs);
  if (size <= Math.max(50, errorMs)) return { text: `in sync (±${errorMs} ms)`, isBad: false };
  const amount = size < 10_000 ? `${size} ms` : `${Math.round(size / 1_000)} s`;
  return {
    text: `${amount} ${aheadMs > 0 ? 'behind' : 'ahead of'} the server (±${errorMs} ms)`,
    isBad: size > skewMaxMs,
  };
}

/** Splits `store: it does not answer` into subject and text. */
export function splitReason(reason: string): { readonly subject: string | undefined; readonly text: string } {
  const [, subject, text] = /^([a-z]+): (.+)$/.exec(reason) ?? [];
  return subject === undefined || text === undefined ? { subject: undefined, text: reason } : { subject, text };
}
