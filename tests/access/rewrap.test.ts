// Every secret rewrapped with another key while a server answers: no request fails, and afterwards the new key alone opens them.
import { randomBytes } from 'node:crypto';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSecretBox } from '../../server/src/access/secrets.ts';
import { openStore } from '../../server/src/store/open.ts';
import type { Account } from '../../server/src/store/store.ts';
import { countOf, tally } from '../support/full-count.ts';
import { createWorld, fetchSigned, runCommand, startServer, type World } from '../support/real-program.ts';
import { act } from '../support/running-ingest.ts';

const secrets = countOf(100, 10_000);
let world: World;
let readers: readonly { readonly userId: string; readonly secret: string }[];

beforeAll(async () => {
  world = await createWorld();
  readers = Array.from({ length: secrets }, () => ({
    userId: crypto.randomUUID(),
    secret: randomBytes(24).toString('base64url'),
  }));
  const box = createSecretBox(Buffer.from(world.key, 'hex'));
  const createdAt = '2026-01-01T00:00:00.000000Z';
  const accountOf = ({ userId, secret }: (typeof readers)[number]): Account => ({
    userId,
    name: userId,
    createdAt,
    disabledAt: null,
    secrets: [{ id: 'one', sealed: box.seal(userId, secret), createdAt, revokedAt: null }],
    entitlements: ['public'],
    rateLimits: { '*': 0 },
  });
  const store = await openStore(world.store, 'write');
  for (let i = 0; i < readers.length; i += 500) {
    const some = readers.slice(i, i + 500);
    const ids = some.map(({ userId }) => userId);
    await store.admin.update('account', ids, () => some.map(accountOf), act);
  }
  await store.close();
}, 600_000);
afterAll(() => world.remove());

test(`rewrap: ${secrets} secrets under load fail no request, and only the new key opens them afterwards`, async () => {
  const settings = ['--log-level', 'silent', '--skew-max-ms', '60000'];
  const server = await startServer(world, settings);
  const statusOf = async (url: string, i: number): Promise<number> => {
    const who = readers[i % readers.length] as (typeof readers)[number]; // below the length
    const response = await fetchSigned(url, `/api/v1/reports/latest?feedID=${world.feedId}`, who).catch(
      () => undefined,
    );
    await response?.arrayBuffer();
    return response?.status ?? 0;
  };
  let [asked, failed, isOver] = [0, 0, false];
  const client = async (offset: number): Promise<void> => {
    for (let i = offset; !isOver; i += 37) {
      if ((await statusOf(server.url, i)) !== 200) failed += 1;
      asked += 1;
    }
  };
  const clients = Promise.all(Array.from({ length: 4 }, (_, i) => client(i * 101)));
  await expect.poll(() => asked).toBeGreaterThan(20);
  const [oldKey, newKey] = [join(world.folder, 'old.key'), join(world.folder, 'new.key')];
  cpSync(world.keyFile, oldKey);
  const args = ['secret', 'rewrap', '--new-key-file', newKey, '--key-file', world.keyFile, '--store', world.store];
  const rewrapped = await runCommand([...args, '--json'], world.folder);
  const before = asked;
  await expect.poll(() => asked).toBeGreaterThan(before + 40);
  isOver = true;
  await clients;
  await server.stop();
  expect(JSON.parse(rewrapped.stdout)).toMatchObject({ accounts: secrets + 1 });
  tally({ 'requests meanwhile': asked, 'of these failed': failed });
  expect(failed).toBe(0);
  const renewed = await startServer({ ...world, keyFile: newKey }, settings);
  for (let i = 0; i < 20; i++) expect(await statusOf(renewed.url, i * 199)).toBe(200);
  await renewed.stop();
  const listen = ['--listen', '127.0.0.1:0', '--ops-listen', '127.0.0.1:0'];
  const old = await runCommand(['serve', '--store', world.store, '--key-file', oldKey, ...listen], world.folder);
  expect([old.code, old.stderr]).toEqual([2, expect.stringContaining('sealed with')]);
}, 3_600_000);
