// Remembers whether this process learns of what others append and change, as its store reports it.
import type { Listener } from './observe.ts';

export type FollowingWatch = {
  readonly observe: Listener;
  /** What is wrong now, for the probe. */
  readonly describe: () => readonly string[];
};

/** `onChange` is called whenever `describe` has something else to say. */
export const watchFollowing = (onChange: () => void = () => {}): FollowingWatch => {
  let reasons: readonly string[] = [];
  return {
    observe: (observation) => {
      if (observation.kind === 'followingStopped')
        reasons = [`new reports and changes are not read from the database: ${observation.reason}`];
      else if (observation.kind === 'followingResumed') reasons = [];
      else return;
      onChange();
    },
    describe: () => reasons,
  };
};
