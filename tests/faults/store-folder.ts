// A store in a folder of its own, made with the commands that an operator uses.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { runCommand } from '../../cli/src/sample-session.fixture.ts';
import { testStream } from '../support/running-ingest.ts';

export type Account = { readonly userId: string; readonly secret: string };

/** Makes the store, with streams and an account of each name. */
export const createStoreFolder = async (name: string, feedIds: readonly FeedId[], accountNames: readonly string[]) => {
  const root = mkdtempSync(join(tmpdir(), `sealpost-${name}-`));
  const [folder, keyFile] = [join(root, 'store'), join(root, 'key')];
  const run = async (...args: string[]): Promise<string> => {
    const env = { SEALPOST_STORE: folder, SEALPOST_KEY_FILE: keyFile };
    const { code, stdout, stderr } = await runCommand(args, { env });
    if (code !== 0) throw new Error(`${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  writeFileSync(join(root, 'catalog.json'), JSON.stringify(feedIds.map((feedId) => testStream(feedId))));
  await run('init');
  await run('stream', 'import', join(root, 'catalog.json'));
  const accounts: Account[] = [];
  for (const one of accountNames) {
    const { userId, secret } = JSON.parse(
      await run('account', 'create', '--name', one, '--entitle', 'public', '--json'),
    );
    accounts.push({ userId, secret });
  }
  return { root, folder, keyFile, accounts, remove: () => rmSync(root, { recursive: true, force: true }) };
};
