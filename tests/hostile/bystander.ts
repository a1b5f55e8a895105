// A client that behaves, beside an attack: how many of its requests were answered, how long they took, and whether each response was its own. It runs in
// a process of its own, or it would measure how busy the attackers are.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import type { Programs } from '../faults/programs.ts';
import {
  createCheck,
  createChoice,
  createQuestions,
  type KnownReports,
  openChecked,
  rightOf,
} from '../http/response-checker.ts';
import type { Credentials } from '../support/running-api.ts';

export type Seen = {
  readonly asked: number;
  readonly answered: number;
  readonly p99Ms: number;
  /** Responses that belong to another request. */
  readonly wrong: readonly string[];
};

const pauseMs = 10;
/** A client gives up then; what was not answered by then was not answered. */
const patienceMs = 30_000;

export type Errand = {
  readonly url: string;
  readonly known: KnownReports;
  readonly account: Credentials;
  readonly ms: number;
};

/** This module, for `buildPrograms`. */
export const bystanderProgram = 'tests/hostile/bystander.ts';

/** Starts the process of the bundled module; `watch` asks about known reports for a while, two requests at a time. */
export const startBystander = (
  programs: Programs,
  url: string,
  known: KnownReports,
  { userId, secret }: Credentials,
) => {
  const child = fork(programs.fileOf('bystander'), ['bystander'], { execArgv: [], serialization: 'advanced' });
  const ready = once(child, 'message');
  return {
    watch: async (ms: number): Promise<Seen> => {
      await ready;
      child.send({ url, known, account: { userId, secret }, ms } satisfies Errand);
      return (await once(child, 'message'))[0] as Seen; // what it sends
    },
    close: (): void => child.disconnect(),
  };
};

/** Asks again and again, on one connection that it opens anew when it was closed. */
const watchService = async ({ url, known, account, ms }: Errand): Promise<Seen> => {
  const check = createCheck();
  const { small } = createQuestions(known, account, createChoice(1));
  let connection = openChecked(url, check);
  const times: number[] = [];
  let asked = 0;
  for (const end = performance.now() + ms; performance.now() < end; asked += 2) {
    if (!connection.isOpen()) connection = openChecked(url, check);
    const startedMs = performance.now();
    const { leave, ask } = connection;
    const patience = globalThis.setTimeout(leave, patienceMs);
    const pair = [await ask(small()), await ask(small())];
    for (const { answered } of pair) if (await answered) times.push(performance.now() - startedMs);
    clearTimeout(patience);
    await setTimeout(pauseMs);
  }
  connection.leave();
  const sorted = times.toSorted((a, b) => a - b);
  const p99Ms = sorted[Math.floor(sorted.length * 0.99)] ?? Number.POSITIVE_INFINITY;
  return { asked, answered: rightOf(check.findings), p99Ms, wrong: check.findings.wrong };
};

if (process.argv[2] === 'bystander') {
  process.on('message', (errand: Errand) => void watchService(errand).then((seen) => process.send?.(seen)));
  process.on('disconnect', () => process.exit(0));
  process.send?.('ready');
}
