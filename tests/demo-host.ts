// One demo for all test files that only read from it: signing its history takes 16 s of CPU, and each minute of it 3 s. The first file that asks starts
// it, and it stops when all have left it. Files that stop a demo, or test its limits, start their own.
import { createServer } from 'node:http';
import { buildExplorer } from './explorer/build.ts';
import type { Demo } from './support/running-demo.ts';

/** Limits that files do not reach together: they have one address and account. There are limits, so that answers tell them. */
const settings = {
  SEALPOST_REQUESTS_PER_SECOND: '1000',
  SEALPOST_ANONYMOUS_REQUESTS_PER_SECOND: '1000',
  SEALPOST_PUBLIC_REQUESTS_PER_SECOND: '5000',
  SEALPOST_FAILURES_PER_SECOND: '1000',
  SEALPOST_SOCKETS_PER_ACCOUNT: '1000',
  SEALPOST_EVENT_LOOP_LAG_MAX_MS: '60000', // other tests keep the machine busy: no load shedding
  SEALPOST_SKEW_MAX_MS: '60000', // the same: a request may wait for seconds between its signature and the server
};

/** For so long a demo that nobody uses waits for the next file. */
const unusedMs = 30_000;

// Imported only when a demo is asked for: it brings most of the server into vitest's process.
const start = async (): Promise<Demo> => {
  const [{ startDemo }] = await Promise.all([import('./support/running-demo.ts'), buildExplorer()]);
  return startDemo({ settings });
};

/** What vitest runs before the tests of each project, the first of which serves all; it calls what is returned after them. */
export const setup = async (): Promise<(() => Promise<void>) | undefined> => {
  if (process.env.SEALPOST_SHARED_DEMO !== undefined) return undefined;
  let demo: Promise<Demo> | undefined;
  let users = 0;
  const stop = async (): Promise<void> => {
    const last = demo;
    demo = undefined;
    await last?.then(
      (running) => running.stop(),
      () => {},
    );
  };
  const stopIfUnused = (): void => void (users === 0 && stop());
  const server = createServer(async ({ method }, response) => {
    if (method === 'DELETE') {
      users -= 1;
      setTimeout(stopIfUnused, unusedMs).unref();
      return void response.end();
    }
    users += 1;
    demo ??= start();
    const answer = await demo.catch((error: Error) => ({ failure: error.message }));
    response.end(JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  process.env.SEALPOST_SHARED_DEMO = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  return async () => {
    server.close();
    server.closeAllConnections();
    await stop();
  };
};

/** The shared demo, once it is ready; its `stop` leaves it to the other files, if any. Outside of vitest, a demo of the caller's own. */
export const joinDemo = async (): Promise<Demo> => {
  const shared = process.env.SEALPOST_SHARED_DEMO;
  if (shared === undefined) return start();
  const answer = (await (await fetch(shared)).json()) as Demo | { readonly failure: string }; // as served above
  if ('failure' in answer) throw new Error(`The shared demo did not start: ${answer.failure}`);
  return { ...answer, stop: async () => void (await fetch(shared, { method: 'DELETE' })) };
};
