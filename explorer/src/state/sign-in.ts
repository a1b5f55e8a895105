// The state of the sign-in dialog, and the checks of credentials that need no server.
import { type ReadonlySignal, signal } from '@preact/signals';
import type { Credentials } from '@sealpost/client';
import { uuidPattern } from '@sealpost/protocol';
import type { Explanation } from './session.ts';

/** The dialog; any component may open it. */
export type SignIn = {
  readonly isOpen: ReadonlySignal<boolean>;
  readonly open: () => void;
  readonly close: () => void;
};

export function createSignIn(): SignIn {
  const isOpen = signal(false);
  return {
    isOpen,
    open: () => {
      isOpen.value = true;
    },
    close: () => {
      isOpen.value = false;
    },
  };
}

/** What is obviously wrong with the credentials; undefined if the server should check them. */
export function checkCredentials({ userId, secret }: Credentials): Explanation | undefined {
  if (userId === '' || secret === '')
    return {
      problem: 'Enter both the user ID and the secret.',
      advice: 'The server’s operator gives you both.',
    };
  if (uuidPattern.test(userId)) return undefined;
  if (uuidPattern.test(secret))
    return {
      problem: 'The two fields look swapped.',
      advice: 'The user ID is the shorter one, with four hyphens.',
    };
  return {
    problem: 'The user ID is incomplete.',
    advice: 'It has 36 characters, like 8e6f2c1a-0b7d-4e5f-9a3c-1d2e3f405162.',
  };
}
