// What a demo sets up once and finds again when it is started again: key, catalog, signers, an account with its secret.
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type FeedId, formatDate, type SignerSet, type Stream, schemaVersionOf } from '@sealpost/protocol';
import { createKeyFile } from '@sealpost/server/access/key';
import { createSecret, createSecretBox, parseKey } from '@sealpost/server/access/secrets';
import { createPrivateFile } from '@sealpost/server/runtime/file-replacement';
import { makeFolder } from '@sealpost/server/runtime/files';
import type { Account, Act, RegisteredSignerSet, Store } from '@sealpost/server/store/store';
import { createNetwork, createStreams } from '@sealpost/simulator';
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
export function openDemoWorld(folder: string): DemoWorld {
  makeFolder(folder);
  createKeyFile(demoKeyFile(folder));
  if (!existsSync(worldFile(folder))) {
    const world: DemoWorld = {
      seed: 'demo',
      userId: randomUUID(),
      secret: createSecret(),
      ingestToken: createSecret(),
    };
    createPrivateFile(worldFile(folder), `${JSON.stringify(world)}\n`);
  }
  return readWorld(worldFile(folder));
}

// The parser's message would quote the file, which contains secrets.
const readWorld = (path: string): DemoWorld => {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as DemoWorld; // written just so
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw usageError(`${path} is damaged. Delete the folder of the demo to start over, or use another: --dir FOLDER.`);
  }
};

/** Writes the profile that lets the CLI read as the demo account. */
export const writeDemoProfile = (folder: string, url: string, { userId, secret }: DemoWorld): void =>
  writeFileSync(
    demoProfilesFile(folder),
    `${JSON.stringify({ [demoFiles.profile]: { url, userId, secret } }, null, 2)}\n`,
    { mode: 0o600 },
  );

/** Registers the demo's catalog, signers and account, where they are not yet. */
export async function registerDemo(store: Store, folder: string, world: DemoWorld, nowMs: number): Promise<void> {
  if ((await store.admin.get('account', world.userId)) !== undefined) return;
  const { signerSet } = await createNetwork({ seed: world.seed });
  const streams = createStreams('testnet').map(({ stream }) => stream);
  const key = readFileSync(demoKeyFile(folder), 'utf8');
  await registerNetwork(store, { ...world, name: 'demo', key, signerSet, streams, nowMs });
}

/** A catalog, the oracles that sign for it, and an account that reads all of it. */
export type RegisteredNetwork = Pick<DemoWorld, 'userId' | 'secret'> & {
  /** Of the account, and of who acts. */
  readonly name: string;
  /** The key that seals the secret, in hex. */
  readonly key: string;
  readonly signerSet: SignerSet;
  readonly streams: readonly Stream[];
  readonly nowMs: number;
};

/** Registers what is not registered yet. */
export async function registerNetwork(store: Store, network: RegisteredNetwork): Promise<void> {
  const { userId, name, signerSet, streams, nowMs } = network;
  const act: Act = { atMs: nowMs, actor: name, action: `${name} set-up`, detail: {} };
  const keep =
    <T>(wanted: readonly T[]) =>
    (current: readonly (T | undefined)[]) =>
      wanted.map((one, i) => current[i] ?? one);
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
  await store.admin.update('account', [userId], keep([createAccount(network)]), act);
}

const createAccount = ({ userId, secret, name, key, streams, nowMs }: RegisteredNetwork): Account => {
  const box = createSecretBox(parseKey(key));
  const hidden = streams.filter((stream) => stream.hidden).map(({ feedId }) => `feed:${feedId}`);
  const secrets = [{ id: name, sealed: box.seal(userId, secret), createdAt: formatDate(nowMs), revokedAt: null }];
  return {
    userId,
    name,
    createdAt: formatDate(nowMs),
    disabledAt: null,
    secrets,
    entitlements: ['public', ...hidden],
    rateLimits: {},
  };
};

/** Streams with a report, one-second crypto streams first. */
export const demoFeedIds = (store: Store, streams: Iterable<Stream>): readonly FeedId[] =>
  rankedFeedIds([...streams].filter(({ feedId }) => store.reports.latest(feedId) !== undefined));

/** One-second crypto streams first. */
export function rankedFeedIds(streams: readonly Stream[]): readonly FeedId[] {
  const rank = ({ feedId, feedType, hidden }: Stream) =>
    feedType === 'Crypto' && schemaVersionOf(feedId) === 3 && !hidden ? 0 : 1;
  return streams.toSorted((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1)).map(({ feedId }) => feedId);
}
