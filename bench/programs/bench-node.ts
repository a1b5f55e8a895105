// A whole node to be measured: a store in a temporary folder, the streams of the bench and an account that may read them.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Stream } from '@sealpost/protocol';
import { createSecret, createSecretBox } from '../../server/src/access/secrets.ts';
import { resolveSettings, type SettingName } from '../../server/src/config/config.ts';
import { type Node, openNode } from '../../server/src/node/node.ts';
import { testStream } from '../../tests/support/running-ingest.ts';
import { benchStreams } from '../rekeyed-reports.ts';

export type BenchNode = {
  readonly node: Node;
  readonly userId: string;
  readonly secret: string;
  readonly stop: () => Promise<void>;
};

/** Opens one with everything on, and limits that nothing here reaches. Streams and store are the bench's own unless others are given. */
export const openBenchNode = async (
  streams: readonly Stream[] = benchStreams.map((feedId) => testStream(feedId)),
  address?: string,
  changes: Partial<Record<SettingName, string>> = {},
  ingestToken?: string,
): Promise<BenchNode> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-bench-'));
  const key = randomBytes(32);
  writeFileSync(join(folder, 'key'), key.toString('hex'), { mode: 0o600 });
  const flags = {
    store: address ?? folder,
    keyFile: join(folder, 'key'),
    listen: '127.0.0.1:0',
    opsListen: '127.0.0.1:0',
    requestsPerSecond: '1000000',
    socketsPerAccount: '1000000',
    eventLoopLagMaxMs: '60000',
    drainMs: '0',
    network: 'testnet',
    publicRequestsPerSecond: '0',
    anonymousRequestsPerSecond: '0',
    ...changes,
  };
  const { values } = resolveSettings({ flags, env: {}, file: undefined });
  const node = await openNode({ settings: values, version: 'bench', ingestToken });
  const { store } = node.write;
  const userId = crypto.randomUUID();
  const secret = createSecret();
  const act = { atMs: Date.now(), actor: 'bench', action: 'set up', detail: {} };
  const secrets = [{ id: '1', sealed: createSecretBox(key).seal(userId, secret), createdAt: '', revokedAt: null }];
  const feedIds = streams.map(({ feedId }) => feedId);
  await store.admin.update('stream', feedIds, () => streams, act);
  await store.admin.update(
    'account',
    [userId],
    () => [
      { userId, name: 'bench', createdAt: '', disabledAt: null, secrets, entitlements: ['public'], rateLimits: {} },
    ],
    act,
  );
  const stop = async (): Promise<void> => {
    await node.stop('bench');
    rmSync(folder, { recursive: true, force: true });
  };
  return { node, userId, secret, stop };
};
