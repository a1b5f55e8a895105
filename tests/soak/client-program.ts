// The process of all clients of a soak; see clients.ts.
import { type ClientKind, clientKinds, type Surroundings } from './client-kinds.ts';
import type { ClientsPlan, Message, Order } from './clients.ts';
import type { Coverage } from './coverage.ts';

const answered: Record<string, number> = {};
let outOfOrder = 0;
let [isOver, running] = [false, Promise.resolve() as Promise<unknown>];
let credentials: ReturnType<Surroundings['credentials']>;
let renewing = new AbortController();
const ending = new AbortController();
const readers: { readonly kind: ClientKind; readonly feedIds: readonly string[]; readonly coverage: Coverage }[] = [];

type Described = { readonly status?: unknown; readonly statusCode?: unknown; readonly code?: unknown };

/** What an error says, beginning with its status and code: those of an answer, or of the system. The published SDK has no codes. */
const textOf = (error: unknown): string => {
  const { status, statusCode, code } = error as Described; // whatever it is, it has them or not
  return [status, statusCode, code, String(error)].filter((part) => part !== undefined && part !== '').join(' ');
};

const tell = (message: Message): void => void process.send?.(message);

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
  answered: (kind, status) => {
    const name = status === undefined ? kind : `${kind} ${status}`;
    answered[name] = (answered[name] ?? 0) + 1;
  },
  failed: (kind, error) => tell({ failure: { atMs: Date.now(), kind, text: textOf(error) } }),
  cameLate: () => {
    outOfOrder += 1;
  },
  covers: (kind, feedIds, coverage) => void readers.push({ kind, feedIds, coverage }),
});

const start = (plan: ClientsPlan): Promise<unknown> => {
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

/** How long readers may take to get what is stored, on a machine that has much else to do. */
const catchUpMs = 300_000;

const haveAll = (until: Readonly<Record<string, number>>): boolean =>
  readers.every(({ feedIds, coverage }) =>
    feedIds.every(
      (feedId) => (coverage.newestOf(feedId) ?? 0) >= (until[feedId] ?? 0) && coverage.missingOf(feedId).length === 0,
    ),
  );

const obey = async (order: Order): Promise<void> => {
  if (order.order === 'stop') {
    isOver = true;
    const end = performance.now() + catchUpMs;
    while (!haveAll(order.until) && performance.now() < end) await new Promise((resolve) => setTimeout(resolve, 100));
    ending.abort();
    renewing.abort();
    await running;
    const got = readers.map(({ kind, feedIds, coverage }) => ({ kind, feedIds, got: coverage.list() }));
    tell({ told: { answered, outOfOrder, readers: got } });
  } else {
    renew(order.credentials);
    if (order.order === 'start') running = start(order.plan);
  }
};

process.on('message', (order: Order) => void obey(order));
process.on('disconnect', () => process.exit(0));
tell('ready');
