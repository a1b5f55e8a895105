// A whole node for a process whose system calls fail. It prints its addresses, then does what it is told on standard input; its log goes to standard
// error. Mode `create` only makes a store, and says how that went; `write` opens one alone, and tells of its writing.
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { openNode } from '../../server/src/node/node.ts';
import { openStore } from '../../server/src/store/open.ts';
import type { Store } from '../../server/src/store/store.ts';
import { nodeSettings } from '../faults/node-settings.ts';
import { secondStream } from '../support/signed-reports.ts';

const [mode = 'serve', folder = '', keyFile = '', token = ''] = process.argv.slice(2);
const print = (line: string): void => void writeSync(1, `${line}\n`);
const codeOf = (error: unknown): string => {
  const { code, message } = error as { code?: string; message: string };
  return code === undefined ? `unnamed: ${message}` : String(code);
};

/** Both ways in which a node writes to its administrative records. */
const administer = async ({ usage, admin }: Store): Promise<string> => {
  const day = new Date().toISOString().slice(0, 10);
  const added = usage.add([{ userId: 'somebody', day, route: 'reportLatest', requests: 1 }], [], Date.now());
  const logged = admin.log({ atMs: Date.now(), actor: 'test', action: 'tried', detail: {} });
  const results = await Promise.allSettled([added, logged]);
  return results.map((one) => (one.status === 'fulfilled' ? 'ok' : codeOf(one.reason))).join(' ');
};

const create = async (): Promise<string> => {
  const store = await openStore(folder, 'write');
  await store.close();
  return 'created';
};

const serve = async (): Promise<void> => {
  const logTo = { write: (line: string) => void writeSync(2, line) };
  const node = await openNode({ settings: nodeSettings(folder, keyFile), version: '0.0.0', ingestToken: token, logTo });
  print(`ready ${node.url} ${node.opsUrl}`);
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === 'administer') print(`administered ${await administer(node.write.store)}`);
    if (line === 'stop') break;
  }
  await node.stop('test');
};

/** A store that tells of its writing, and writes as it is told: to reports, usage, or administrative records. */
const write = async (): Promise<void> => {
  const store = await openStore(folder, 'write', {
    writing: { stallMs: 200, probeEveryMs: 50 },
    tell: (event) => /writing/.test(event.kind) && print(JSON.stringify(event)),
  });
  const refused = { atMs: 0, code: 'test', message: 'test', feedId: null, observationsMs: null, line: 'test' };
  const acts: Record<string, () => Promise<unknown>> = {
    reports: () => store.quarantine.add([refused]),
    usage: () => store.usage.add([{ userId: 'a', day: '2025-01-31', route: 'a', requests: 1 }], [], Date.now()),
  };
  const feedId = secondStream(1);
  const mirrored = { kind: 'mirror' as const, key: feedId, record: { feedId, source: 'test', from: 0, open: [] } };
  acts.records = () => store.admin.put([mirrored], { atMs: 0, actor: 'test', action: 'put', detail: {} });
  print('opened');
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === 'close') break;
    void acts[line]?.().then(() => print(`written ${line}`));
  }
  await store.close();
};

if (mode === 'write') await write();
else if (mode === 'create') print(await create().catch((error: unknown) => `failed ${codeOf(error)}`));
else await serve();
process.exit(0);
