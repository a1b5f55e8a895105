// Browsers have no WebSocket transport: theirs cannot send the headers that sign a request, so streams use server-sent events.
import type { Transport } from './transport.ts';

export const loadSockets = async (): Promise<Transport | undefined> => undefined;

/** Browsers name themselves; another name would need the permission of the server. */
export const sendsUserAgent = false;
