// The process of all clients of a soak; see clients.ts.
import { createHistogram } from '../load/histogram.ts';
import { type ClientKind, clientKinds, type Surroundings } from './client-kinds.ts';
import type { ClientsPlan, Failure, Order, Told } from './clients.ts';

const answered: Record<string, number> = {};
const failures: Failure[] = [];
let outOfOrder = 0;
let [isOver, running] = [false, Promise.resolve() as Promise<unknown>];
let credentials: ReturnType<Surroundings['credentials']>;
let renewing = new AbortController();
const ending = new AbortController();
/** Of the requests without retries, in each of the equal parts of the run. */
const latencies = [createHistogram(), createHistogram(), createHistogram(), createHistogram()];
let [begunMs, runMs] = [0, 1];

const addLatency = (tookMs: number): void => {
  const part = Math.floor(((performance.now() - begunMs) / runMs) * latencies.length);
  latencies[Math.min(part, latencies.length - 1)]?.add(tookMs * 1_000);
};

const surroundings = ({ url, tlsUrl, steady, feedIds, pauseMs }: ClientsPlan): Surroundings => ({
  url,
  tlsUrl,
  steady,
  feedIds,
  credentials: () => credentials,
  over: ending.signal,
  renewed: () => renewing.signal,
  isOver: () => isOver,
  pause: () => new Promise((resolve) => setTimeout(resolve, pauseMs * (0.5 + Math.random()))),
  answered: (kind, status, tookMs) => {
    const name = status === undefined ? kind : `${kind} ${status}`;
    answered[name] = (answered[name] ?? 0) + 1;
    if (kind === 'bare' && tookMs !== undefined) addLatency(tookMs);
  },
  failed: (kind, text) => void failures.push({ atMs: Date.now(), kind, text }),
  cameLate: () => {
    outOfOrder += 1;
  },
});

const start = (plan: ClientsPlan): Promise<unknown> => {
  [begunMs, runMs] = [performance.now(), plan.runMs];
  const around = surroundings(plan);
  const kinds = Object.entries(plan.counts) as [ClientKind, number][]; // the type says so
  return Promise.all(
    kinds.flatMap(([kind, count]) => Array.from({ length: count }, (_, i) => clientKinds[kind](i, around))),
  );
};

const renew = (next: typeof credentials): void => {
  credentials = next;
  const before = renewing;
  renewing = new AbortController();
  before.abort();
};

const obey = async (order: Order): Promise<void> => {
  if (order.order === 'stop') {
    isOver = true;
    ending.abort();
    renewing.abort();
    await running;
    const p99Ms = latencies.map((one) => one.quantile(0.99) / 1_000);
    process.send?.({ answered, failures, outOfOrder, p99Ms } satisfies Told);
  } else {
    renew(order.credentials);
    if (order.order === 'start') running = start(order.plan);
  }
};

process.on('message', (order: Order) => void obey(order));
process.on('disconnect', () => process.exit(0));
process.send?.('ready');
