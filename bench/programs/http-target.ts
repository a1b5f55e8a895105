// A server to be measured, in a process of its own: `api` is a whole node with everything on, its store where an address says or in a
// folder of its own, `bare` answers the same bytes with nothing but node:http. `fill` stores the reports for an `api` that begins after it.
import { createServer } from 'node:http';
import { parseFeedId } from '@sealpost/protocol';
import { testStream } from '../../tests/support/running-ingest.ts';
import { benchStreams, rekeyedReports } from '../rekeyed-reports.ts';
import { openBenchNode } from './bench-node.ts';

/** An answer that the bare server is taught. */
export type BareAnswer = { readonly path: string; readonly headers: readonly string[]; readonly body: string };

/** What the parent asks: µs of CPU so far, ms of the longest iteration of the event loop since it last asked for that, or to learn an answer. */
export type TargetRequest =
  | { readonly ask: 'cpu' | 'block'; readonly answer?: never }
  | { readonly ask: 'learn'; readonly answer: BareAnswer };

/** Tells the parent something. Standard output is the log's, as in a real node. */
const tell = (value: unknown): void => void process.send?.(value);

const answerParent = (learn: (answer: BareAnswer) => void): void => {
  let [isTiming, longestMs, last] = [false, 0, 0];
  const iterate = (): void => {
    const now = performance.now();
    longestMs = Math.max(longestMs, now - last);
    last = now;
    if (isTiming) setImmediate(iterate);
  };
  process.on('message', (request: TargetRequest) => {
    if (request.answer !== undefined) learn(request.answer);
    if (request.ask === 'block') {
      isTiming = !isTiming;
      tell(longestMs);
      [longestMs, last] = [0, performance.now()];
      if (isTiming) setImmediate(iterate);
      return;
    }
    const { user, system } = process.cpuUsage();
    tell(user + system);
  });
};

/** Streams without reports: the catalog has 2,000 with them. */
const silentStreams = Array.from({ length: 2_000 - benchStreams.length }, (_, i) =>
  parseFeedId(`0x0003${(i + 1).toString(16).padStart(60, '0')}`),
);

/** `filledFrom` is the first second of the reports that are stored already. */
const serveApi = async (
  seconds: number,
  address: string | undefined,
  filledFrom: string | undefined,
): Promise<void> => {
  const streams = [...benchStreams, ...silentStreams].map((feedId) => testStream(feedId));
  const { node, userId, secret, stop } = await openBenchNode(streams, address);
  const from = filledFrom === undefined ? Math.floor(Date.now() / 1_000) - seconds : Number(filledFrom);
  if (filledFrom === undefined)
    for (const batch of rekeyedReports(from, seconds)) await node.write.store.reports.append(batch);
  answerParent(() => {});
  tell({ url: node.url, userId, secret, feedIds: benchStreams, from, seconds });
  process.once('SIGTERM', async () => {
    await stop();
    process.exit();
  });
};

const fill = async (seconds: number, address: string | undefined): Promise<void> => {
  const { node, stop } = await openBenchNode(undefined, address);
  const from = Math.floor(Date.now() / 1_000) - seconds;
  for (const batch of rekeyedReports(from, seconds)) await node.write.store.reports.append(batch);
  await stop();
  tell({ from });
  process.exit();
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

const [mode, seconds = '2400', address, filledFrom] = process.argv.slice(2);
if (mode === 'api') await serveApi(Number(seconds), address, filledFrom);
else if (mode === 'fill') await fill(Number(seconds), address);
else serveBare();
