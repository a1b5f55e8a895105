// `npm run bar -- N`: one of the reliability tests at its full figure, by hand; `npm test` runs the same code at reduced counts.
// Results and their dates go into docs/reliability.md.
import { spawn } from 'node:child_process';
import { runAgreement } from './contracts/agreement.ts';
import { damagePrograms, runDamage } from './damage/damage.ts';
import { createDamageWorld } from './damage/world.ts';
import { allCases, callsPrograms, runFailingCalls } from './failing-calls/cases.ts';
import { createPreload } from './failing-calls/preload.ts';
import { createCallsWorld } from './failing-calls/world.ts';
import { runFailovers } from './faults/failover.ts';
import { runKillLoop } from './faults/kill.ts';
import { runMirrorFaults } from './faults/mirror.ts';
import { runPowerCuts } from './faults/power-cut.ts';
import { buildPrograms, type Programs } from './faults/programs.ts';

type Bar = {
  readonly name: string;
  readonly count: number;
  readonly run: (programs: Programs, count: number) => Promise<unknown>;
};

const progress = (what: string, total: number) => (done: number) => {
  if (process.stderr.isTTY) process.stderr.write(`\r${what} ${done + 1} of ${total} `);
};

/** Runs a test file in full, with its own output; rejects where it fails. */
const runTest = (file: string, env: NodeJS.ProcessEnv): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn('npx', ['vitest', 'run', file], { env: { ...process.env, ...env }, stdio: 'inherit' });
    child.once('exit', (code) => (code === 0 ? resolve('passed') : reject(new Error(`${file} failed.`))));
  });

const bars: Readonly<Record<string, Bar>> = {
  23: {
    name: 'idle WebSockets',
    count: 5_000,
    run: (_, count) => runTest('tests/live-endings.test.ts', { SEALPOST_IDLE_SOCKETS: String(count) }),
  },
  24: {
    name: 'kill -9, lives',
    count: 10_000,
    run: async (programs, count) => ({
      honest: await runKillLoop(programs, count, 'honest', progress('life', count)),
      control: await runKillLoop(programs, 12, 'early'),
    }),
  },
  25: {
    name: 'power cuts, ext4',
    count: 500,
    run: async (programs, count) => ({
      honest: await runPowerCuts(programs, count, 'honest', progress('cut', count)),
      control: await runPowerCuts(programs, 10, 'unsynced'),
    }),
  },
  damage: {
    name: 'flipped bits under a whole node, in every table and kind of page',
    count: 500,
    run: async (_, count) => {
      const [world, programs] = [await createDamageWorld(), await buildPrograms(damagePrograms)];
      try {
        return await runDamage(programs, world, count, Math.random, progress('flip', count));
      } finally {
        programs.remove();
        world.remove();
      }
    },
  },
  calls: {
    name: 'system calls that fail under a whole node: every call, error, count and environment, so many cases per node',
    count: 1,
    run: async (_, perNode) => {
      const [preload, programs, world] = [
        createPreload(),
        await buildPrograms(callsPrograms),
        await createCallsWorld(),
      ];
      const options = { perNode, progress: progress('case', allCases.length) };
      try {
        return await runFailingCalls(programs, preload, world, allCases, options);
      } finally {
        preload.remove();
        programs.remove();
        world.remove();
      }
    },
  },
  hostile: {
    name: 'hostile clients, each alone, connections of each',
    count: 50,
    run: (_, count) => runTest('tests/hostile/hostile.test.ts', { SEALPOST_HOSTILE: String(count) }),
  },
  pages: {
    name: 'accessibility of every page of the explorer in both themes, widths',
    count: 6,
    run: (_, count) => runTest('tests/explorer/pages.test.ts', { SEALPOST_PAGE_WIDTHS: String(count) }),
  },
  32: {
    name: 'PostgreSQL fail-overs under two nodes',
    count: 50,
    run: (_, count) => runFailovers(count, progress('fail-over', count)),
  },
  onchain: {
    name: 'reports of all versions, valid and altered, to our contract, verify and the published contracts',
    count: 10_000,
    run: async (_, count) => {
      const result = await runAgreement(count, Date.now() % 2 ** 32, progress('report', count));
      if (result.disagreements.length > 0) throw new Error(JSON.stringify(result, null, 2));
      return result;
    },
  },
  mirror: {
    name: 'mirror under ten kill -9 and five network cuts, minutes',
    count: 30,
    run: (_, count) =>
      runMirrorFaults({
        pastSeconds: 600,
        durationMs: count * 60_000,
        speed: 1,
        kills: 10,
        cuts: 5,
        random: Math.random,
      }),
  },
};

const [number = '', countText] = process.argv.slice(2);
const bar = bars[number];
if (bar === undefined) {
  const known = Object.entries(bars).map(([key, { name, count }]) => `  ${key}  ${name} (${count})`);
  process.stderr.write(`Usage: npm run bar -- N [COUNT]\n${known.join('\n')}\n`);
  process.exit(2);
}
const programs = await buildPrograms();
try {
  const count = Number(countText ?? bar.count);
  const started = Date.now();
  const result = await bar.run(programs, count);
  const seconds = Math.round((Date.now() - started) / 1_000);
  process.stdout.write(
    `${JSON.stringify({ bar: number, name: bar.name, count, result, seconds, date: new Date().toISOString().slice(0, 10) })}\n`,
  );
} finally {
  programs.remove();
}
