// A client that behaves, beside an attack: how many of its requests were answered, and how long they took. It runs in a process of its own,
// or it would measure how busy the attackers are.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { get, Agent as HttpAgent } from 'node:http';
import { get as getTls, Agent as TlsAgent } from 'node:https';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { signRequest } from '@sealpost/protocol';
import type { Credentials } from '../support/running-api.ts';

export type Seen = { readonly asked: number; readonly answered: number; readonly p99Ms: number };

const pauseMs = 10;
/** A client gives up then; what was not answered by then was not answered. */
const patienceMs = 30_000;

export type Errand = {
  readonly url: string;
  readonly target: string;
  readonly account: Credentials;
  readonly ms: number;
};

/** Starts the process; `watch` asks for a while, one request after the other. */
export const startBystander = (url: string, target: string, { userId, secret }: Credentials) => {
  const child = fork(fileURLToPath(import.meta.url), ['bystander'], {
    execArgv: ['--conditions=source', '--import', 'tsx'],
  });
  const ready = once(child, 'message');
  return {
    watch: async (ms: number): Promise<Seen> => {
      await ready;
      child.send({ url, target, account: { userId, secret }, ms } satisfies Errand);
      return (await once(child, 'message'))[0] as Seen; // what it sends
    },
    close: (): void => child.disconnect(),
  };
};

/** Asks for the same thing again and again, on one connection that it opens anew when it was closed. */
const watchService = async ({ url, target, account: { userId, secret }, ms }: Errand): Promise<Seen> => {
  const isTls = url.startsWith('https');
  const agent = isTls
    ? new TlsAgent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false })
    : new HttpAgent({ keepAlive: true, maxSockets: 1 });
  const ask = (): Promise<boolean> =>
    new Promise((resolve) => {
      const headers = { ...signRequest({ method: 'GET', target, userId, timestampMs: Date.now() }, secret) };
      const request = (isTls ? getTls : get)(`${url}${target}`, { agent, headers }, (response) => {
        response.resume().once('close', () => resolve(response.statusCode === 200));
      });
      request.setTimeout(patienceMs, () => request.destroy());
      request.once('error', () => resolve(false));
    });
  const times: number[] = [];
  let asked = 0;
  for (const end = performance.now() + ms; performance.now() < end; asked++) {
    const startedMs = performance.now();
    if (await ask()) times.push(performance.now() - startedMs);
    await setTimeout(pauseMs);
  }
  agent.destroy();
  const sorted = times.toSorted((a, b) => a - b);
  return { asked, answered: times.length, p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? Number.POSITIVE_INFINITY };
};

if (process.argv[2] === 'bystander') {
  process.on('message', (errand: Errand) => void watchService(errand).then((seen) => process.send?.(seen)));
  process.on('disconnect', () => process.exit(0));
  process.send?.('ready');
}
