// Bugs to be found: faulty variants between a node and its database, at least one for each protocol. The product has no switch for any of them.
import type { Driver } from '../../server/src/store/postgres/connection.ts';
import { type AppendVariant, appendProtocol } from './append.ts';
import type { Row } from './database/tables.ts';
import { type LimitsVariant, limitsProtocol } from './limits.ts';
import type { Protocol } from './schedule.ts';

type Rows = readonly Row[];
type Send = (parameters?: readonly unknown[]) => Promise<Rows>;
type Alter = (text: string, parameters: readonly unknown[], send: Send) => Promise<Rows>;

type Statements = {
  readonly unsafe: (text: string, parameters?: readonly unknown[]) => { readonly execute: () => Promise<Rows> };
};
type Client = Statements & {
  readonly begin: (how: string, act: (transaction: Statements) => Promise<unknown>) => Promise<unknown>;
  readonly listen: (channel: string, told: (payload: string) => void, listening: () => void) => Promise<unknown>;
  readonly end: (options?: object) => Promise<void>;
};
type ClientOptions = Readonly<Record<string, unknown>>;

const alterClients =
  (change: (open: (options: ClientOptions) => Client, options: ClientOptions) => Client) =>
  (driver: Driver): Driver => {
    const open = driver as unknown as (url: string, options: ClientOptions) => Client; // the simulated one
    return ((url: string, options: ClientOptions) =>
      change((changed) => open(url, changed), options)) as unknown as Driver; // as it came
  };

const alteredStatements = ({ unsafe }: Statements, alter: Alter): Statements => ({
  unsafe: (text, parameters = []) => ({
    execute: () => alter(text, parameters, (changed = parameters) => unsafe(text, changed).execute()),
  }),
});

/** Changes what statements send and return; each process has an `alter` of its own. */
const alterStatements =
  (createAlter: () => Alter) =>
  (driver: Driver): Driver => {
    const alter = createAlter();
    return alterClients((open, options) => {
      const client = open(options);
      return {
        ...client,
        ...alteredStatements(client, alter),
        begin: (how, act) => client.begin(how, (transaction) => act(alteredStatements(transaction, alter))),
      };
    })(driver);
  };

const skipping = (pattern: RegExp) =>
  alterStatements(() => (text, _, send) => (pattern.test(text) ? Promise.resolve([]) : send()));

export const appendingWithoutLock: AppendVariant = { alter: skipping(/pg_advisory_xact_lock/) };

const isCounters = (text: string): boolean => text.startsWith('SELECT name, value, (SELECT substring');

/** Reads the counters again only after a notification. */
const withoutPolling = (driver: Driver): Driver => {
  const known = new Map<unknown, Rows>();
  const remembered = alterStatements(() => async (text, parameters, send) => {
    if (!isCounters(text)) return send();
    const rows = known.get(parameters[0]) ?? (await send());
    known.set(parameters[0], rows);
    return rows;
  })(driver);
  return alterClients((open, options) => {
    const client = open(options);
    const forgetting =
      <A extends readonly unknown[]>(call: (...args: A) => void) =>
      (...args: A): void => {
        known.clear();
        call(...args);
      };
    return {
      ...client,
      listen: (channel, told, listening) => client.listen(channel, forgetting(told), forgetting(listening)),
    };
  })(remembered);
};

const isBatches = (text: string): boolean => text.startsWith('SELECT first_position, last_position, keys');
const isPositions = (text: string): boolean => text.startsWith('WITH before AS');

/** Of several batches, reads on with the second as if it came first. */
const skippingBatches = alterStatements(() => async (text, _, send) => {
  const rows = await send();
  const [first, second] = rows;
  if (!isBatches(text) || first === undefined || second === undefined) return rows;
  return rows.slice(1).map((row, i) => (i === 0 ? { ...row, first_position: first.first_position } : row));
});

/** Remembers the mark of a batch by its position, as if a database could not lose it and take another one in its place. */
const rememberingMarks = alterStatements(() => {
  const marks = new Map<number, Buffer>();
  return async (text, parameters, send) => {
    const rows = await send();
    const [first] = rows;
    if (isCounters(text)) {
      const mark = marks.get(Number(parameters[0]));
      return mark === undefined ? rows : rows.map((row) => ({ ...row, mark }));
    }
    const remember = (last: unknown, keys: unknown) =>
      marks.set(Number(last), Buffer.from(keys as Buffer).subarray(0, 4)); // as batches have it
    if (isBatches(text)) for (const { last_position, keys } of rows) remember(last_position, keys);
    if (isPositions(text)) remember(Number(first?.first_position) + Number(parameters[0]) - 1, parameters[1]);
    return rows;
  };
});

const isExchange = (text: string): boolean => text.startsWith('WITH told AS');
const countingTwice = alterStatements(() => async (text, _, send) => {
  const rows = await send();
  return isExchange(text) ? rows.flatMap((row) => [row, row]) : rows;
});
const neverPublishing = alterStatements(
  () => (text, parameters, send) =>
    isExchange(text) ? send(parameters.map((one, i) => (i === 2 ? new Uint8Array() : one))) : send(),
);
/** Hears each node only once: its later turns are taken for known. */
const hearingOnce = alterStatements(
  () => (text, parameters, send) =>
    isExchange(text)
      ? send(parameters.map((one, i) => (i === 4 ? String(one).replaceAll(/\d+/g, '999999') : one)))
      : send(),
);

export type Planted = {
  readonly bug: string;
  /** Found within so many schedules, whatever the first seed; those of commits and marks take some hundreds, the others a few. */
  readonly within: number;
  /** The first seed that finds it, for `npm test`; a change of what nodes send moves it, which costs time alone. */
  readonly near?: number;
} & (
  | { readonly protocol: 'append'; readonly variant: AppendVariant }
  | { readonly protocol: 'limits'; readonly variant: LimitsVariant }
);

export const plantedBugs: readonly Planted[] = [
  {
    bug: 'appending without the lock',
    within: 2_000,
    protocol: 'append',
    variant: appendingWithoutLock,
  },
  {
    bug: 'acknowledging a commit that the standby may not have',
    within: 20_000,
    near: 863,
    protocol: 'append',
    variant: { alter: alterClients((open, options) => open({ ...options, onnotice: () => {} })) },
  },
  {
    bug: 'acknowledging duplicates that were only read',
    within: 20_000,
    near: 1_330,
    protocol: 'append',
    variant: { alter: skipping(/'confirmed'/) },
  },
  { bug: 'an asynchronous standby', within: 2_000, protocol: 'append', variant: { replication: 'async' } },
  { bug: 'following without polling', within: 2_000, protocol: 'append', variant: { alter: withoutPolling } },
  { bug: 'a follower that skips a batch', within: 2_000, protocol: 'append', variant: { alter: skippingBatches } },
  {
    bug: 'marks of batches that are remembered by position',
    within: 20_000,
    near: 270,
    protocol: 'append',
    variant: { alter: rememberingMarks },
  },
  { bug: 'tokens of other nodes counted twice', within: 200, protocol: 'limits', variant: { alter: countingTwice } },
  { bug: 'tokens that are never published', within: 200, protocol: 'limits', variant: { alter: neverPublishing } },
  { bug: 'tokens of other nodes heard only once', within: 200, protocol: 'limits', variant: { alter: hearingOnce } },
];

/** The protocols by name. Their worlds differ, which no runner looks at. */
export const protocols = {
  append: appendProtocol as unknown as Protocol<unknown, unknown>,
  limits: limitsProtocol as unknown as Protocol<unknown, unknown>,
} as const;
