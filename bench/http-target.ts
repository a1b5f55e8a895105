// A server to be measured, in a process of its own: `api` is a whole node with everything on, `bare` answers the same bytes with
// nothing but node:http.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecret, createSecretBox } from '../server/src/access/secrets.ts';
import { resolveSettings } from '../server/src/config.ts';
import { openNode } from '../server/src/node.ts';
import { testStream } from '../tests/door.ts';
import { benchStreams, rekeyedReports } from './rekeyed-reports.ts';

/** An answer that the bare server is taught. */
export type BareAnswer = { readonly path: string; readonly headers: readonly string[]; readonly body: string };

/** What the parent asks: µs of CPU so far, or to learn an answer. */
export type TargetRequest =
  | { readonly ask: 'cpu'; readonly answer?: never }
  | { readonly ask: 'learn'; readonly answer: BareAnswer };

/** Tells the parent something. Standard output is the log's, as in a real node. */
const tell = (value: unknown): void => void process.send?.(value);

const answerParent = (learn: (answer: BareAnswer) => void): void => {
  process.on('message', (request: TargetRequest) => {
    if (request.answer !== undefined) learn(request.answer);
    const { user, system } = process.cpuUsage();
    tell(user + system);
  });
};

const seconds = 2_400;

const serveApi = async (): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-http-'));
  const key = randomBytes(32);
  writeFileSync(join(folder, 'key'), key.toString('hex'), { mode: 0o600 });
  const flags = {
    store: folder,
    keyFile: join(folder, 'key'),
    listen: '127.0.0.1:0',
    ingestListen: '127.0.0.1:0',
    requestsPerSecond: '1000000',
    lagMaxMs: '60000',
    network: 'testnet',
  };
  const { values } = resolveSettings({ flags, env: {}, file: undefined });
  const node = await openNode({ settings: values, version: 'bench', ingestToken: undefined });
  const { store } = node.write;
  const from = Math.floor(Date.now() / 1_000) - seconds;
  for (const batch of rekeyedReports(from, seconds)) await store.reports.append(batch);
  const userId = crypto.randomUUID();
  const secret = createSecret();
  const act = { atMs: Date.now(), actor: 'bench', action: 'set up', detail: {} };
  const secrets = [{ id: '1', sealed: createSecretBox(key).seal(userId, secret), createdAt: '', revokedAt: null }];
  await store.admin.update('stream', benchStreams, () => benchStreams.map((feedId) => testStream(feedId)), act);
  await store.admin.update(
    'account',
    [userId],
    () => [
      { userId, name: 'bench', createdAt: '', disabledAt: null, secrets, entitlements: ['public'], rateLimits: {} },
    ],
    act,
  );
  answerParent(() => {});
  tell({ url: node.url, userId, secret, feedIds: benchStreams, from, seconds });
  process.once('SIGTERM', async () => {
    await node.stop('bench');
    rmSync(folder, { recursive: true, force: true });
    process.exit();
  });
};

// Answers each path with the headers and the body that it was taught, so that both servers send the same bytes.
const serveBare = (): void => {
  const answers = new Map<string, { readonly headers: string[]; readonly body: Buffer }>();
  const server = createServer({ optimizeEmptyRequests: true } as object, (request, response) => {
    const answer = answers.get(request.url ?? '');
    response.writeHead(200, answer?.headers ?? []);
    response.end(answer?.body);
  });
  answerParent(({ path, headers, body }) => answers.set(path, { headers: [...headers], body: Buffer.from(body) }));
  server.listen(0, '127.0.0.1', () => tell({ url: `http://127.0.0.1:${(server.address() as { port: number }).port}` }));
  process.once('SIGTERM', () => process.exit());
};

if (process.argv[2] === 'api') await serveApi();
else serveBare();
