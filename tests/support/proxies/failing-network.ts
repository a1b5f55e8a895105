// The real program behind a network that fails, with reports coming in past it: what a stream delivers is held against the store.
import { createWorld, fetchSigned, startServer, type World } from '../real-program.ts';
import { createSignedReports } from '../signed-reports.ts';
import { type CuttingProxy, openCuttingProxy } from './cutting-proxy.ts';

const token = 'token-of-the-tests';
const settings = ['--origins', '001,002', '--ahead-max-ms', '6000000', '--verifier-threads', '1'];

/** Takes so many further reports from the stream under test. */
export type Receive = (count: number) => Promise<void>;

export type FailingNetwork = {
  readonly world: World;
  readonly proxy: CuttingProxy;
  /** The first second that no report has yet. */
  readonly nextSecond: () => number;
  /** Brings in reports of the next seconds, with a gap before them; not through the proxy. */
  readonly ingest: (count: number) => Promise<void>;
  /** Everything that the store has from a second on. */
  readonly storedFrom: (from: number) => Promise<readonly unknown[]>;
  /** Kills the server in mid-stream, 20 reports after its beginning, and starts another on the same store. */
  readonly killInMidStream: (receive: Receive) => Promise<void>;
  /** Lets everything that is sent vanish, until the stream has noticed and for so long at least, while reports come in. */
  readonly vanish: (receive: Receive, noticed: () => Promise<void>, forMs?: number) => Promise<void>;
  /** Takes one of the two origins down, then the other, while reports come in. */
  readonly takeDownInTurn: (receive: Receive) => Promise<void>;
  readonly close: () => Promise<void>;
};

export const openFailingNetwork = async (): Promise<FailingNetwork> => {
  const { report } = await createSignedReports();
  const world = await createWorld();
  const serve = () => startServer(world, settings, { SEALPOST_INGEST_TOKEN: token });
  let server = await serve();
  const proxy = await openCuttingProxy(server.port);
  let seconds = Math.floor(Date.now() / 1_000) + 10;
  const line = (): string => {
    seconds += 1;
    const { fullReport } = report(world.feedId, seconds, seconds);
    return JSON.stringify({ fullReport: `0x${Buffer.from(fullReport).toString('hex')}` });
  };
  const ingest = async (count: number): Promise<void> => {
    seconds += 5;
    const answer = await fetch(`${server.opsUrl}/ingest`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
      body: Array.from({ length: count }, line).join('\n'),
    });
    const stored = (await answer.text()).match(/"stored"/g)?.length;
    if (stored !== count) throw new Error(`${stored} of ${count} reports were stored.`);
  };
  return {
    world,
    proxy,
    nextSecond: () => seconds + 1,
    ingest,
    storedFrom: async (from) => {
      const target = `/api/v1/reports/page?feedID=${world.feedId}&startTimestamp=${from}&limit=1000`;
      return (await (await fetchSigned(server.url, target, world)).json()).reports;
    },
    killInMidStream: async (receive) => {
      await receive(20);
      await ingest(5);
      // The program itself: from sources, the child is only what starts it.
      process.kill(Number(/"pid":(\d+)/.exec(server.output())?.[1]), 'SIGKILL');
      await server.finished;
      server = await serve();
      await ingest(10); // while the proxy still leads to the killed one
      proxy.upstreamPort = server.port;
      await receive(15);
      await ingest(5);
      await receive(5);
    },
    vanish: async (receive, noticed, forMs = 0) => {
      const over = new Promise((resolve) => setTimeout(resolve, forMs));
      proxy.freeze();
      await ingest(30);
      await noticed();
      await over;
      await ingest(10);
      proxy.thaw();
      await receive(40);
      await ingest(3);
      await receive(3);
    },
    takeDownInTurn: async (receive) => {
      for (const origin of ['001', '002']) {
        proxy.downOrigins.clear();
        proxy.downOrigins.add(origin);
        proxy.drop(`X-Cll-Origin: ${origin}`);
        await ingest(10);
        await receive(10);
      }
      proxy.downOrigins.clear();
    },
    close: async () => {
      await server.stop();
      await proxy.close();
      world.remove();
    },
  };
};
