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

/** Whether accounts, streams and signers could be read again after their last change. `onChange` as above. */
export const watchReloads = (onChange: OnChange = () => {}): TroubleWatch =>
  watchTrouble((observation) => {
    if (observation.kind === 'adminReloadRecovered') return '';
    if (observation.kind !== 'adminReloadFailed') return undefined;
    const { message } = observation.error;
    return `accounts, streams and signers are those from before their last change, which cannot be read: ${message}`;
  }, onChange);
