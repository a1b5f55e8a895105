// Each system call that a node makes, failing with each error, once, ten times and for ever, in either environment of the store. Meanwhile the node answers
// readers and acknowledges nothing that is not stored; afterwards it stores again, or its probe says why not.
import { openStore } from '../../server/src/store/open.ts';
import type { StoredReport } from '../../server/src/store/store.ts';
import type { Programs } from '../faults/programs.ts';
import { type Call, calls, type Failure, failures, type Preload, type Rule } from './preload.ts';
import { type CallsNode, type CallsWorld, feedId, startCallsNode } from './world.ts';

export const callsPrograms = ['tests/failing-calls/node-program.ts'];

/** Which acknowledgements are believed: those of the node, or, as a control that must lose reports, every report that was sent. */
export type Believed = 'acknowledged' | 'sent';

export type CaseOutcome = {
  readonly name: string;
  /** How often the call failed. */
  readonly hits: number;
  readonly refused: number;
  /** What should not have happened. */
  readonly faults: readonly string[];
};

const environments = { reports: '/reports/data.mdb', administration: '/admin/data.mdb' } as const;
type Place = keyof typeof environments;

export type Case = Omit<Rule, 'path'> & { readonly place: Place };

const times = [1, 10, Number.POSITIVE_INFINITY] as const;

/** Every case; a listening socket belongs to no environment. */
export const allCases: readonly Case[] = calls.flatMap((call: Call) =>
  (Object.keys(failures) as Failure[]).flatMap((error) =>
    times.flatMap((count) =>
      (Object.keys(environments) as Place[])
        .filter((place) => call !== 'accept' || place === 'reports')
        .map((place) => ({ call, error, times: count, place })),
    ),
  ),
);

const nameOf = ({ call, error, times: count, place }: Case): string =>
  `${call} ${error} ${Number.isFinite(count) ? count : 'for ever'} ${place}`;

/** Rounds of writing and reading while the call fails: more than the ten failures of a case. */
const rounds = 12;
const resumeMaxMs = 8_000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

type Round = { readonly sent: string; readonly administered: string; readonly statuses: readonly number[] };

const runRound = async (node: CallsNode, world: CallsWorld, believed: Believed): Promise<Round> => {
  const report = world.next();
  const sent = await node.send(report).catch((error: Error) => error.message);
  if (sent === 'stored' || believed === 'sent') world.acknowledged.push(report);
  return { sent, administered: await node.administer(), statuses: await node.read() };
};

/** Codes that a sender is told while the store cannot be written to. */
const expectedCodes = ['stored', 'store_disk_full', 'store_write_failed', 'store_unavailable', 'store_outcome_unknown'];

const faultsOf = (round: Round, { call }: Case): readonly string[] => {
  const faults = round.statuses.filter((status) => status !== 200).map((status) => `a read was answered ${status}`);
  for (const result of [round.sent, ...round.administered.split(' ')]) {
    const isNamed = result === 'ok' || expectedCodes.includes(result);
    // A connection that is not accepted is the client's to open again.
    if (!isNamed && !(call === 'accept' && /socket hang up|ECONNRESET|timed out/.test(result)))
      faults.push(`a write was answered ${result}`);
  }
  return faults;
};

/** Waits until writing works in both environments and the probe names nothing; returns what is still wrong after a while. */
const awaitResumption = async (node: CallsNode, world: CallsWorld, believed: Believed): Promise<readonly string[]> => {
  const untilMs = performance.now() + resumeMaxMs;
  for (;;) {
    const { sent, administered } = await runRound(node, world, believed);
    const probe = await node.probe();
    const isWell = sent === 'stored' && administered === 'ok ok' && !probe.includes('writing');
    if (isWell) return [];
    if (performance.now() > untilMs) return [`after it healed: ${sent}, ${administered}, ${probe.trim()}`];
    await pause(100);
  }
};

/** Reports that were acknowledged and are not stored byte for byte. */
const findLost = async (world: CallsWorld): Promise<number> => {
  const store = await openStore(world.folder, 'read');
  const isStored = async ({ observationsMs, fullReport }: StoredReport): Promise<boolean> => {
    const [found] = await store.reports.at([feedId], observationsMs / 1_000);
    return found !== undefined && Buffer.compare(found.fullReport, fullReport) === 0;
  };
  let lost = 0;
  for (const report of world.acknowledged) if (!(await isStored(report))) lost += 1;
  await store.close();
  return lost;
};

const isAlive = ({ child }: CallsNode): boolean => child.exitCode === null && child.signalCode === null;

/** A call that fails for ever stops each environment once; one that fails a few times may stop writing as often. */
const stopsMax: Readonly<Record<string, number>> = { 1: 1, 10: 10, [String(Number.POSITIVE_INFINITY)]: 2 };

const runCase = async (
  node: CallsNode,
  preload: Preload,
  world: CallsWorld,
  one: Case,
  believed: Believed,
): Promise<CaseOutcome> => {
  const faults: string[] = [];
  const before = { stopped: node.logged('writingStopped'), resumed: node.logged('writingResumed') };
  preload.fail({ ...one, path: environments[one.place] });
  let refused = 0;
  let probe = '';
  const isUnreachable = one.call === 'accept' && !Number.isFinite(one.times); // each round waits for its time to be up
  for (let i = 0; i < (isUnreachable ? 2 : rounds) && isAlive(node); i++) {
    const round = await runRound(node, world, believed);
    faults.push(...faultsOf(round, one));
    if (round.sent !== 'stored') refused += 1;
    if (round.sent.startsWith('store_')) probe = await node.probe();
    // What fails a few times may work again before the probe is asked.
    if (round.sent.startsWith('store_') && !Number.isFinite(one.times) && !probe.includes('writing'))
      faults.push(`the probe says nothing: ${probe}`);
  }
  const hits = preload.hits();
  preload.heal();
  if (isAlive(node)) faults.push(...(await awaitResumption(node, world, believed)));
  const counts = () => [node.logged('writingStopped') - before.stopped, node.logged('writingResumed') - before.resumed];
  for (let i = 0; i < 20 && counts()[0] !== counts()[1]; i++) await pause(50); // its log comes through a pipe
  const [stops = 0, resumptions] = counts();
  if (stops !== resumptions) faults.push(`${stops} stops and ${resumptions} resumptions were logged`);
  if (stops > (stopsMax[String(one.times)] ?? 0)) faults.push(`${stops} stops were logged`);
  if (!isAlive(node)) faults.push(`the process ended: ${node.log().slice(-2_000)}`);
  return { name: nameOf(one), hits, refused, faults: [...new Set(faults)] };
};

/** Runs cases one after the other, each ended by kill -9 and a look at what is stored; a node serves several where `perNode` says so. */
export const runFailingCalls = async (
  programs: Programs,
  preload: Preload,
  world: CallsWorld,
  cases: readonly Case[],
  options: { readonly believed?: Believed; readonly perNode?: number } = {},
) => {
  const { believed = 'acknowledged', perNode = 1 } = options;
  const outcomes: CaseOutcome[] = [];
  let lost = 0;
  for (let i = 0; i < cases.length; i += perNode) {
    const node = await startCallsNode(programs, preload, world);
    await runRound(node, world, believed); // its connections are open from now on
    for (const one of cases.slice(i, i + perNode))
      outcomes.push(await runCase(node, preload, world, one, believed).finally(preload.heal));
    await node.kill();
    lost = Math.max(lost, await findLost(world));
  }
  return {
    cases: outcomes.length,
    hits: outcomes.reduce((sum, { hits }) => sum + hits, 0),
    /** Cases whose call the node never makes. */
    unused: outcomes.filter(({ hits }) => hits === 0).length,
    refused: outcomes.reduce((sum, one) => sum + one.refused, 0),
    acknowledged: world.acknowledged.length,
    lost,
    faulty: outcomes.filter(({ faults }) => faults.length > 0),
  };
};
