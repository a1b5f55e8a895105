// Secrets rotated under load on two nodes of one database: a new one works everywhere before it is used, and a revoked one, its connections and a
// removed entitlement end everywhere soon after.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSecretBox } from '../../server/src/access/secrets.ts';
import { openStore } from '../../server/src/store/open.ts';
import type { Account, Store } from '../../server/src/store/store.ts';
import { countOf, tally } from '../support/full-count.ts';
import { openSocket } from '../support/live-clients.ts';
import { createWorld, fetchSigned, type Server, startServer, type World } from '../support/real-program.ts';
import { act } from '../support/running-ingest.ts';
import { type RunningPostgres, startPostgres } from '../support/running-postgres.ts';

const rotations = countOf(2, 300);
let postgres: RunningPostgres;
let world: World;
let nodes: readonly Server[];
let store: Store;

beforeAll(async () => {
  postgres = await startPostgres();
  world = await createWorld(postgres.url('rotation'));
  const settings = ['--log-level', 'silent', '--failures-per-second', '0', '--skew-max-ms', '60000'];
  nodes = [await startServer(world, settings), await startServer(world, settings)];
  store = await openStore(world.store, 'write');
});
afterAll(async () => {
  await store?.close();
  for (const node of nodes ?? []) await node.stop();
  world?.remove();
  await postgres?.stop();
});

const change = (changed: (account: Account) => Account): Promise<unknown> =>
  store.admin.update('account', [world.userId], ([account]) => [changed(account as Account)], act); // the world has it

type Secret = { readonly id: string; readonly secret: string };
const at = '2026-01-02T00:00:00.000000Z';

const addSecret = async (): Promise<Secret> => {
  const [id, secret] = [randomBytes(4).toString('hex'), randomBytes(24).toString('base64url')];
  const sealed = createSecretBox(Buffer.from(world.key, 'hex')).seal(world.userId, secret);
  const added = { id, sealed, createdAt: at, revokedAt: null };
  // As the command does: a revoked one keeps its dates alone.
  await change(({ secrets, ...rest }) => ({ ...rest, secrets: [...secrets.slice(-4), added] }));
  return { id, secret };
};
const revoke = (id: string): Promise<unknown> =>
  change(({ secrets, ...rest }) => ({
    ...rest,
    secrets: secrets.map((one) => (one.id === id ? { ...one, sealed: '', revokedAt: at } : one)),
  }));

const statusAt = async ({ url }: Server, secret: string): Promise<number> => {
  const target = `/api/v1/reports/latest?feedID=${world.feedId}`;
  const response = await fetchSigned(url, target, { userId: world.userId, secret });
  await response.arrayBuffer();
  return response.status;
};

/** The ms until every node answers with this status. */
const untilAll = async (secret: string, status: number): Promise<number> => {
  const startedMs = performance.now();
  const waitFor = async (node: Server): Promise<void> => {
    while ((await statusAt(node, secret)) !== status) await new Promise((resolve) => setTimeout(resolve, 10));
  };
  await Promise.all(nodes.map(waitFor));
  return Math.round(performance.now() - startedMs);
};

/** Asks 300 times a second at most, at both nodes, with whatever secret is current when a request is signed. */
const startClients = (current: () => string) => {
  const seen = { requests: 0, failed: 0 };
  let isOver = false;
  const underWay = new Set<Promise<void>>();
  const askOne = async (node: Server): Promise<void> => {
    const status = await statusAt(node, current()).catch(() => 0);
    seen.requests += 1;
    if (status !== 200) seen.failed += 1;
  };
  const client = async (i: number): Promise<void> => {
    for (let n = i; !isOver; n++) {
      const asked = askOne(nodes[n % nodes.length] as Server); // there are two
      underWay.add(asked);
      await asked;
      underWay.delete(asked);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const clients = Array.from({ length: 6 }, (_, i) => client(i));
  return {
    seen,
    /** Resolves when what was signed before is answered. */
    settled: () => Promise.all(underWay),
    stop: () => {
      isOver = true;
      return Promise.all(clients);
    },
  };
};

test(`rotation: ${rotations} secrets in turn under load on two nodes fail no request, and revoked ones end everywhere`, async () => {
  let current: Secret = { id: 'first', secret: world.secret };
  const clients = startClients(() => current.secret);
  const worst = { added: 0, revoked: 0, sockets: 0 };
  for (let i = 0; i < rotations; i++) {
    const old = current;
    const credentials = { userId: world.userId, secret: old.secret };
    const sockets = await Promise.all(
      nodes.map(({ url }) => openSocket(url, `/api/v1/ws?feedIDs=${world.feedId}`, credentials)),
    );
    const next = await addSecret();
    worst.added = Math.max(worst.added, await untilAll(next.secret, 200));
    current = next;
    await clients.settled();
    await revoke(old.id);
    const revokedMs = performance.now();
    const closed = Promise.all(sockets.map((socket) => socket.closed)).then((codes) => {
      worst.sockets = Math.max(worst.sockets, Math.round(performance.now() - revokedMs));
      return codes.map(({ code }) => code);
    });
    worst.revoked = Math.max(worst.revoked, await untilAll(old.secret, 401));
    expect(await closed).toEqual([1008, 1008]);
  }
  await clients.stop();
  await change((account) => ({ ...account, entitlements: [] }));
  const entitlementMs = await untilAll(current.secret, 401);
  tally(clients.seen);
  const waits = {
    'ms until a new secret works at both nodes': worst.added,
    'ms until a revoked one is rejected at both': worst.revoked,
    'ms until its WebSockets are closed': worst.sockets,
    'ms until a removed entitlement holds at both': entitlementMs,
  };
  for (const [what, ms] of Object.entries(waits)) tally({ [what]: ms }, { [what]: 1_000 });
  expect(clients.seen.failed).toBe(0);
  expect(clients.seen.requests).toBeGreaterThan(10);
}, 3_600_000);
