// Runs a sandbox until it is interrupted: node, simulated network, history, scenario runner. What was opened is closed in reverse, whatever fails.
import { join } from 'node:path';
import { accountRecord, deriveCredentials, readAccounts, type SandboxCredentials } from '@sealpost/sandbox/accounts';
import { createAdministration, createOracles } from '@sealpost/sandbox/administration';
import { createSandboxClock, type SandboxClock } from '@sealpost/sandbox/clock';
import { createControl } from '@sealpost/sandbox/control';
import { createFaults, type Faults } from '@sealpost/sandbox/faults/faults';
import { SandboxError } from '@sealpost/sandbox/push/errors';
import { pushReport } from '@sealpost/sandbox/push/push';
import { ScenarioError } from '@sealpost/sandbox/scenario/parse';
import { compileScenario, type ScenarioRunner, startScenarioRunner } from '@sealpost/sandbox/scenario-runner';
import { sandboxStatus } from '@sealpost/sandbox/status';
import { createSignInCodes } from '@sealpost/server/access/sign-in-code';
import type { Settings } from '@sealpost/server/config/config';
import { submitPatiently } from '@sealpost/server/ingest/ingest';
import { type Node, openNode } from '@sealpost/server/node/node';
import { watchStart } from '@sealpost/server/runtime/start-watch';
import { CommandError, exitCodes, usageError } from '../../failure.ts';
import { type Session, untilAborted } from '../../session.ts';
import { readVersion } from '../../version.ts';
import { createQuietLog } from '../demo/demo.ts';
import { registerNetwork } from '../demo/world.ts';
import { announceSandbox } from './announce.ts';
import { castOf } from './cast.ts';
import { emptyStore, openSandboxFolder, type SandboxFolder, writeSandboxProfile } from './folder.ts';
import { openSandboxChain, requireEvm, type SandboxChain } from './local-chain.ts';
import type { SandboxPlan } from './plan.ts';
import { compilePrices } from './prices.ts';

export type SandboxRun = {
  readonly plan: SandboxPlan;
  readonly settings: Settings;
  readonly dir: string | undefined;
  readonly json: boolean;
  readonly isLogAsked: boolean;
};

/** What is to be closed, last opened first. */
type Closing = { readonly add: (close: () => unknown) => void; readonly all: () => Promise<void> };

const createClosing = (): Closing => {
  const closers: (() => unknown)[] = [];
  return {
    add: (close) => void closers.unshift(close),
    all: async () => {
      const failures: unknown[] = [];
      for (const close of closers.splice(0)) {
        try {
          await close();
        } catch (error) {
          failures.push(error); // the others are closed all the same
        }
      }
      if (failures.length > 0) throw failures[0];
    },
  };
};

/** Runs until interrupted. */
export async function runSandbox(session: Session, run: SandboxRun): Promise<void> {
  const signal = session.interruption(['SIGHUP']); // of a terminal that is closed: the temporary folder must not stay
  const interrupted = untilAborted(signal);
  const closing = createClosing();
  try {
    const started = await startSandbox(session, run, closing, signal);
    if (started !== undefined) await Promise.race([started.failed, interrupted]);
  } finally {
    await closing.all();
  }
}

const startSandbox = async (
  session: Session,
  run: SandboxRun,
  closing: Closing,
  signal: AbortSignal,
): Promise<ScenarioRunner | undefined> => {
  const { plan } = run;
  if (plan.hasChain && plan.chainUrl === undefined) await requireEvm();
  const { seed, size, scenario } = plan;
  const cast = await castOf(plan, Math.floor(session.nowMs() / 1_000));
  const { startSecond, streams, specs, reportsPerSecond } = cast;
  const compiled = asUsageOf(() => compileScenario({ scenario, startSecond, streams, specs }));
  const prices = compilePrices(plan.prices, startSecond, streams);
  const accounts = asUsageOf(() => readAccounts(plan.accounts, streams, seed));
  const source = cast.open([...prices.effects, ...compiled.flatMap(({ effects }) => effects)]);
  source.catch(() => {}); // thrown below
  closing.add(async () => (await source.catch(() => undefined))?.close());
  const clock = createSandboxClock({
    startMs: startSecond * 1_000,
    speed: plan.speed,
    paused: true,
    monotonicMs: () => performance.now(),
  });
  const oracles = createOracles({ seed, ...size });
  const { signerSet } = await oracles.after(0);
  const faults = createFaults({ seed, nowMs: clock.nowMs, sign: oracles.sign });
  const credentials = deriveCredentials(seed);
  const folder = await openSandboxFolder(session.cwd, run.dir, credentials);
  closing.add(folder.remove);
  let runner: ScenarioRunner | undefined;
  const opened = await openSandboxNode(session, run, folder, credentials, { clock, faults, runner: () => runner });
  closing.add(() => opened.stop('the sandbox ended'));
  const { store, view, ingest } = opened.write;
  await registerNetwork(store, { ...credentials, name: 'sandbox', signerSet, streams, nowMs: startSecond * 1_000 });
  for (const account of accounts) {
    const record = accountRecord(account, credentials.key, startSecond * 1_000);
    const act = { atMs: startSecond * 1_000, actor: 'sandbox', action: 'sandbox set-up', detail: {} };
    await store.admin.update('account', [account.userId], () => [record], act);
  }
  const past = { from: startSecond - cast.pastSeconds, to: startSecond };
  await (await source).signHistory(past, store.reports.append, signal);
  if (signal.aborted) return undefined;
  const { port } = run.settings.listen;
  const warn = (text: string): void => void session.stderr.write(text);
  const chainParts = { url: plan.chainUrl, port: port === 0 ? 0 : port + 2, view, nowMs: clock.nowMs, warn };
  const chain = plan.hasChain ? await startChainOf(chainParts, closing) : undefined;
  const administer = createAdministration(store, view, oracles);
  const submit = (lines: readonly string[]) => submitPatiently(ingest, lines, signal);
  runner = await startScenarioRunner({
    clock,
    source: await source,
    faults,
    submit,
    administer: async (act) => {
      await administer(act);
      await chain?.update();
    },
    push: ({ report, second }) =>
      pushReport(
        { newestMs: store.reports.newestMs, view, sign: oracles.sign, ingest: submit },
        { ...report, nowMs: second * 1_000 },
      ),
    seed,
    startSecond,
    past: `${cast.pastSeconds}s`,
    speed: plan.speed,
    specs,
    streams,
    reportsPerSecond,
    scenario,
    series: prices.acts,
    monotonicMs: () => performance.now(),
  });
  closing.add(runner.stop);
  if (cast.isNow) clock.step(Math.max(0, session.nowMs() - startSecond * 1_000));
  if (!plan.isPaused) clock.resume();
  writeSandboxProfile(folder, opened.url, credentials);
  await announceSandbox(session, {
    node: opened,
    credentials,
    accounts,
    folder,
    plan,
    state: runner.state(),
    chain,
    hasExplorer: run.settings.explorer,
    json: run.json,
  });
  return runner;
};

const startChainOf = async (parts: Parameters<typeof openSandboxChain>[0], closing: Closing): Promise<SandboxChain> => {
  try {
    const chain = await openSandboxChain(parts);
    closing.add(chain.close);
    return chain;
  } catch (error) {
    throw explainStart(error);
  }
};

const asUsageOf = <T>(read: () => T): T => {
  try {
    return read();
  } catch (error) {
    throw error instanceof ScenarioError || error instanceof SandboxError ? usageError(error.message) : error;
  }
};

type NodeParts = {
  readonly clock: SandboxClock;
  readonly faults: Faults;
  readonly runner: () => ScenarioRunner | undefined;
};

const openSandboxNode = async (
  session: Session,
  { settings, isLogAsked }: SandboxRun,
  folder: SandboxFolder,
  { userId, secret, ingestToken }: SandboxCredentials,
  { clock, faults, runner }: NodeParts,
): Promise<Node> => {
  const toStderr = (line: string): void => void session.stderr.write(line);
  const starting = watchStart((text) => toStderr(`${text}\n`));
  emptyStore(folder);
  try {
    return await openNode({
      settings: { ...settings, store: `lmdb:${join(folder.path, 'store')}`, keyFile: folder.keyFile },
      version: readVersion(),
      ingestToken,
      logTo: { write: isLogAsked ? toStderr : createQuietLog(toStderr) },
      starting,
      hooks: {
        reportNowMs: clock.nowMs,
        wrap: faults.wrap,
        status: () => ({ sandbox: sandboxStatus(clock, faults) }),
        privateRoute: { path: '/sandbox', handle: createControl(runner) },
        signIn: { codes: createSignInCodes(secret, session.nowMs), credentials: { userId, secret } },
      },
    });
  } catch (error) {
    throw explainStart(error);
  } finally {
    starting.end();
  }
};

const explainStart = (error: unknown): unknown => {
  const { code, port } = Object(error);
  if (code !== 'EADDRINUSE') return error;
  const text = `Port ${port} is in use by another program. Stop it, or use free ports: sealpost sandbox --listen 127.0.0.1:0.`;
  return new CommandError(exitCodes.unavailable, text, { cause: error });
};
