// What /status.json says of a sandbox.
import type { Body } from '@sealpost/protocol';
import type { SandboxClock } from './clock.ts';
import type { Faults } from './faults/faults.ts';

/** Of those that /status.json lists. */
const faultsMax = 20;

/** What /status.json says of a sandbox: its time, and the faults that are active. The explorer shows it in a banner. */
export function sandboxStatus(clock: SandboxClock, faults: Pick<Faults, 'list'>): Body<'SandboxStatus'> {
  const { nowMs, speed, paused } = clock.state();
  const active = faults.list().filter(({ state }) => state === 'active');
  return { timeMs: nowMs, speed, paused, faults: active.slice(0, faultsMax).map(({ text }) => text) };
}
