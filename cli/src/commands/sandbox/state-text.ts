// The state of a sandbox as text for a terminal.

import { formatFault } from '@sealpost/sandbox/faults/parse';
import type { SandboxState, TimedEvent } from '@sealpost/sandbox/scenario-runner';

const describeEvent = ({ type, time, at: _, ...fields }: TimedEvent): string => {
  const words = Object.entries(fields).map(([name, value]) => {
    if (name === 'fault') return formatFault(value as Parameters<typeof formatFault>[0]); // the table's only field of this name
    return `${name}=${Array.isArray(value) ? value.join(',') : typeof value === 'object' ? JSON.stringify(value) : String(value)}`;
  });
  return [time, type, ...words].join(' ');
};

const describeSpeed = ({ speed, actualSpeed, paused, behindSeconds }: SandboxState): string => {
  if (paused) return `paused${behindSeconds > 0 ? `, ${behindSeconds} s of a step to go` : ''}`;
  const isBehind = behindSeconds > 2 * speed;
  return isBehind
    ? `${speed}, but ${actualSpeed} in fact: time waits for the reports, ${behindSeconds} s behind`
    : `${speed}`;
};

/** Lines with names in front; lists below. */
export function renderState(state: SandboxState): string {
  const { scenario, reports, faults, set, problems } = state;
  const rows: readonly (readonly [string, string])[] = [
    ['time', state.time],
    ['speed', describeSpeed(state)],
    ['started at', state.start],
    ['seed', state.seed],
    ['streams', state.streams.join(', ')],
    [
      'reports',
      `${reports.stored} since the start${reports.rejected > 0 ? `, ${reports.rejected} rejected (${reports.lastRejection})` : ''}`,
    ],
    ...(scenario.events > 0
      ? ([['scenario', `${scenario.name ?? 'unnamed'}: ${scenario.done} of ${scenario.events} events done`]] as const)
      : []),
    ...(scenario.next === null ? [] : ([['next', describeEvent(scenario.next)]] as const)),
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  const lines = rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`);
  const list = (title: string, entries: readonly string[]): readonly string[] =>
    entries.length === 0 ? [] : ['', title, ...entries.map((entry) => `  ${entry}`)];
  return `${[
    ...lines,
    ...list('set', set.map(describeEvent)),
    ...list('faults', faults.map(describeFault)),
    ...list('problems', problems),
  ].join('\n')}\n`;
}

const describeFault = ({ id, text, state, applied, matched }: SandboxState['faults'][number]): string =>
  `${id}  ${text}  ${state}, applied ${applied} of ${matched} times`;
