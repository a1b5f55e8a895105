// What /status.json says of a sandbox; the explorer shows it in a banner.
import type { Body } from '@sealpost/protocol';
import type { SandboxClock } from './clock.ts';
import type { Faults } from './faults/faults.ts';

const faultsMax = 20;

/** Its time, and the faults that are active. */
export const sandboxStatus = (clock: SandboxClock, faults: Pick<Faults, 'list'>): Body<'SandboxStatus'> => {
  const { nowMs, speed, paused } = clock.state();
  const active = faults.list().filter(({ state }) => state === 'active');
  return { timeMs: nowMs, speed, paused, faults: active.slice(0, faultsMax).map(({ text }) => text) };
};
