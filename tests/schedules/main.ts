// `npm run schedules`: runs one schedule again with its steps, or searches from a seed on.
import { parseArgs } from 'node:util';
import { plantedBugs, protocols } from './planted.ts';
import { describeFailure, type ProtocolName, searchSchedules, showSchedule } from './search.ts';

const help = `Usage: npm run schedules -- PROTOCOL --seed N [--count N] [--bug N]

Simulates nodes on one PostgreSQL. Prints the steps of the schedule of a seed, or, with --count, runs as many from that seed on and prints the
first that violates an invariant, without the actions that it does not need.

  PROTOCOL    ${Object.keys(protocols).join(' or ')}
  --bug N     Plants a bug:
${plantedBugs.map(({ bug, protocol }, i) => `                ${i} (${protocol}) ${bug}`).join('\n')}
`;

// Where tests started it, it ends with them.
const stop = (): void => process.exit(2);
if (process.connected === false) stop();
process.once('disconnect', stop);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string' }, count: { type: 'string' }, bug: { type: 'string' }, help: { type: 'boolean' } },
});
const [name = ''] = positionals;
if (values.help || values.seed === undefined || !Object.hasOwn(protocols, name)) {
  process.stdout.write(help);
  process.exit(values.help ? 0 : 2);
}
const protocol = name as ProtocolName; // checked above
const seed = Number(values.seed);
const variant = plantedBugs[Number(values.bug ?? -1)]?.variant ?? {};
if (values.count === undefined) {
  const { steps, violation } = await showSchedule(protocol, variant, seed);
  process.stdout.write(`${[...steps, violation?.message ?? 'Every invariant holds.'].join('\n')}\n`);
  process.exit(violation === undefined ? 0 : 1);
}
const { ran, outcome, failure } = await searchSchedules({ protocol, variant, seed, count: Number(values.count) });
const planted = values.bug === undefined ? '' : ` --bug ${values.bug}`;
process.stdout.write(
  `${failure === undefined ? 'Every invariant holds.' : describeFailure(protocol, failure, planted)}\n`,
);
process.stdout.write(`${JSON.stringify({ schedules: ran, ...outcome })}\n`);
process.exit(failure === undefined ? 0 : 1);
