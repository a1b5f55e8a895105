// What a demo sets up once and finds again when it is started again: key, catalog, signers, an account with its secret.
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type FeedId, formatDate, type Stream, schemaVersionOf } from '@sealpost/protocol';
import { createNetwork, createStreams } from '@sealpost/simulator';
import { createSecret, createSecretBox, parseKey } from '../../../access/secrets.ts';
import type { Account, Act, RegisteredSignerSet, Store } from '../../../store/store.ts';
import { usageError } from '../../failure.ts';
import { demoFiles } from '../../profiles.ts';

/** Kept in the demo's folder, next to the store, with mode 0600. */
export type DemoWorld = {
  readonly seed: string;
  readonly userId: string;
  readonly secret: string;
  readonly ingestToken: string;
};

const worldFile = (folder: string) => join(folder, demoFiles.world);

/** The file with the demo's key-encryption key. */
export const demoKeyFile = (folder: string): string => join(folder, 'sealpost.key');

/** The profile file that the printed commands name. */
export const demoProfilesFile = (folder: string): string => join(folder, demoFiles.profiles);

/** Finds the demo of a folder, or makes one. */
export const openDemoWorld = (folder: string): DemoWorld => {
  mkdirSync(folder, { recursive: true });
  if (!existsSync(demoKeyFile(folder))) writePrivate(demoKeyFile(folder), `${randomBytes(32).toString('hex')}\n`);
  if (!existsSync(worldFile(folder))) {
    const world: DemoWorld = {
      seed: 'demo',
      userId: randomUUID(),
      secret: createSecret(),
      ingestToken: createSecret(),
    };
    writePrivate(worldFile(folder), `${JSON.stringify(world)}\n`);
  }
  return readWorld(worldFile(folder));
};

// The parser's message would quote the file, which contains secrets.
const readWorld = (path: string): DemoWorld => {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as DemoWorld; // written just so
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw usageError(`${path} is damaged. Delete the folder of the demo to start over, or use another: --dir FOLDER.`);
  }
};

const writePrivate = (path: string, text: string): void => writeFileSync(path, text, { mode: 0o600 });

/** Writes the profile that lets the CLI read as the demo account. */
export const writeDemoProfile = (folder: string, url: string, { userId, secret }: DemoWorld): void =>
  writePrivate(
    demoProfilesFile(folder),
    `${JSON.stringify({ [demoFiles.profile]: { url, userId, secret } }, null, 2)}\n`,
  );

/** Registers catalog, signers and account, where they are not yet. */
export const registerDemo = async (store: Store, folder: string, world: DemoWorld, nowMs: number): Promise<void> => {
  const { signerSet } = await createNetwork({ seed: world.seed });
  const streams = createStreams('testnet').map(({ stream }) => stream);
  const act: Act = { atMs: nowMs, actor: 'demo', action: 'demo set-up', detail: {} };
  const keep =
    <T>(wanted: readonly T[]) =>
    (current: readonly (T | undefined)[]) =>
      wanted.map((one, i) => current[i] ?? one);
  if ((await store.admin.get('account', world.userId)) !== undefined) return;
  await store.admin.update(
    'stream',
    streams.map(({ feedId }) => feedId),
    keep(streams),
    act,
  );
  await store.admin.update(
    'signerSet',
    [signerSet.configDigest],
    keep<RegisteredSignerSet>([{ ...signerSet, addedAt: formatDate(nowMs), retiredAt: null }]),
    act,
  );
  await store.admin.update('account', [world.userId], keep([createAccount(folder, world, streams, nowMs)]), act);
};

const createAccount = (
  folder: string,
  { userId, secret }: DemoWorld,
  streams: readonly Stream[],
  nowMs: number,
): Account => {
  const box = createSecretBox(parseKey(readFileSync(demoKeyFile(folder), 'utf8')));
  const hidden = streams.filter((stream) => stream.hidden).map(({ feedId }) => `feed:${feedId}`);
  const secrets = [{ id: 'demo', sealed: box.seal(userId, secret), createdAt: formatDate(nowMs), revokedAt: null }];
  return {
    userId,
    name: 'demo',
    createdAt: formatDate(nowMs),
    disabledAt: null,
    secrets,
    entitlements: ['public', ...hidden],
    rateLimits: {},
  };
};

/** Streams with a report, one-second crypto streams first. */
export const demoFeedIds = (store: Store, streams: Iterable<Stream>): readonly FeedId[] => {
  const readable = [...streams].filter(({ feedId }) => store.reports.latest(feedId) !== undefined);
  const rank = ({ feedId, feedType, hidden }: Stream) =>
    feedType === 'Crypto' && schemaVersionOf(feedId) === 3 && !hidden ? 0 : 1;
  return readable.sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1)).map(({ feedId }) => feedId);
};
