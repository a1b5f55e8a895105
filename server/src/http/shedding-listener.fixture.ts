// A listener whose server sheds whatever can be shed, for tests.
import { createRateLimiter } from '../access/rate-limit.ts';
import { createAddressSet } from '../runtime/ip-address.ts';
import { createAdmissionControl } from './admission-control.ts';
import type { FindFile } from './explorer.ts';
import { createPipeline, type RequestEvent } from './pipeline.ts';
import { openHttpServer } from './server.ts';

export const openShedding = async (findFile?: FindFile) => {
  const events: RequestEvent[] = [];
  const state = { isDraining: false };
  const unused = {} as never; // no request gets as far
  const rules = {
    requestsPerSecond: 0,
    anonymousRequestsPerSecond: 0,
    publicRequestsPerSecond: 10,
    failuresPerSecond: 0,
    trustedProxies: createAddressSet([]),
    origins: [],
  };
  const [accounts, addresses] = [createRateLimiter(10), createRateLimiter(10)];
  const monotonicMs = () => 0;
  const parts = { authenticator: unused, useSignature: unused, readableOf: unused };
  const admission = createAdmissionControl({ ...parts, accounts, addresses, rules, monotonicMs });
  const { handle } = createPipeline({
    handlers: unused,
    admission,
    readQuery: unused,
    contextOf: unused,
    findFile,
    nowMs: Date.now,
    reportNowMs: Date.now,
    monotonicMs,
    newRequestId: () => 'id',
    isDraining: () => state.isDraining,
    load: { begin: () => 2 },
    isTls: false,
    observe: (event) => void events.push(event),
  });
  const listener = await openHttpServer({ host: '127.0.0.1', port: 0 }, handle, () => 'id');
  return { events, state, listener };
};
