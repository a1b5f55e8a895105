// Remembers what is wrong with this process for the probe, from what it observes.
import type { Listener, Observation } from './observe.ts';

export type TroubleWatch = {
  readonly observe: Listener;
  /** What is wrong now; the newest reason. */
  readonly describe: () => readonly string[];
};

type OnChange = () => void;

/** `describe` says what an observation means: what is wrong, that nothing is anymore (an empty text), or nothing at all. */
const watchTrouble = (describe: (observation: Observation) => string | undefined, onChange: OnChange): TroubleWatch => {
  let trouble = '';
  return {
    observe: (observation) => {
      const now = describe(observation);
      if (now === undefined || now === trouble) return;
      trouble = now;
      onChange();
    },
    describe: () => (trouble === '' ? [] : [trouble]),
  };
};

/** Whether this process learns of what others append and change. `onChange` is called whenever there is something else to say. */
export const watchFollowing = (onChange: OnChange = () => {}): TroubleWatch =>
  watchTrouble((observation) => {
    if (observation.kind === 'followingResumed') return '';
    if (observation.kind !== 'followingStopped') return undefined;
    return `new reports and changes are not read from the database: ${observation.reason}`;
  }, onChange);

/** Whether the database can lose what was acknowledged. */
const describeDurability = (observation: Observation): string | undefined => {
  if (observation.kind === 'durabilityRestored') return '';
  return observation.kind === 'durabilityReduced' ? `store: ${observation.reason}` : undefined;
};

/** Whether the database lost what this process had read: until a restart, since memory still has it. */
const describeLosses = (observation: Observation): string | undefined =>
  observation.kind === 'commitsLost' ? `store: ${observation.reason}` : undefined;

/** Whether accounts, streams and signers could be read again after their last change. */
const describeReloads = (observation: Observation): string | undefined => {
  if (observation.kind === 'adminReloadRecovered') return '';
  if (observation.kind !== 'adminReloadFailed') return undefined;
  const { message } = observation.error;
  return `accounts, streams and signers are those from before their last change, which cannot be read: ${message}`;
};

/** Everything else. `onChange` as above. */
export function watchTroubles(onChange: OnChange = () => {}): TroubleWatch {
  const watches = [describeReloads, describeDurability, describeLosses].map((describe) =>
    watchTrouble(describe, onChange),
  );
  return {
    observe: (observation) => {
      for (const watch of watches) watch.observe(observation);
    },
    describe: () => watches.flatMap((watch) => watch.describe()),
  };
}
