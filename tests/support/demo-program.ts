// The demo's node and feed in a folder, with a past of seconds, so that signing it costs little; says when its recent past is stored.
import { writeSync } from 'node:fs';
import { startFeed } from '../../cli/src/commands/demo/feed.ts';
import { demoKeyFile, openDemoWorld, registerDemo } from '../../cli/src/commands/demo/world.ts';
import { createSession } from '../../cli/src/session.ts';
import { resolveSettings } from '../../server/src/config/config.ts';
import { openNode } from '../../server/src/node/node.ts';

const [folder = '', pastSeconds = '', recentSeconds = ''] = process.argv.slice(2);
const world = openDemoWorld(folder);
const flags = { listen: '127.0.0.1:0', opsListen: '127.0.0.1:0', explorer: 'off', verifierThreads: '1' };
const env = { SEALPOST_STORE: folder, SEALPOST_KEY_FILE: demoKeyFile(folder) };
const { values: settings } = resolveSettings({ flags, env, file: undefined });
const logTo = { write: () => {} };
const node = await openNode({ settings, version: '0.0.0', ingestToken: world.ingestToken, logTo });
await registerDemo(node.write.store, folder, world, Date.now());
const feed = await startFeed(node, {
  session: createSession(process),
  world,
  pastSeconds: Number(pastSeconds),
  recentSeconds: Number(recentSeconds),
  json: true,
});
await Promise.race([feed.ready, feed.failed]);
writeSync(1, 'ready\n');
await feed.failed;
