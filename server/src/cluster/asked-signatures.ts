// A worker's side of the signatures that opened live connections: it asks the primary, which remembers those of all workers (D250). One question at a
// time: handshakes that come meanwhile are in the next one.
import type { Handshake, SignatureRefusal } from '../access/used-signatures.ts';

type Asked = {
  readonly handshake: Handshake;
  readonly resolve: (refusal: SignatureRefusal | undefined) => void;
};

export const createAskedSignatures = (ask: (handshakes: readonly Handshake[]) => void) => {
  let waiting: Asked[] = [];
  let asked: readonly Asked[] = [];
  const askNext = (): void => {
    if (asked.length > 0 || waiting.length === 0) return;
    asked = waiting;
    waiting = [];
    ask(asked.map(({ handshake }) => handshake));
  };
  return {
    use: (handshake: Handshake): Promise<SignatureRefusal | undefined> =>
      new Promise((resolve) => {
        waiting.push({ handshake, resolve });
        askNext();
      }),
    /** Takes the answer to the last question. */
    receive: (refusals: readonly (SignatureRefusal | undefined)[]): void => {
      const answered = asked;
      asked = [];
      // Each in a turn of its own: a connection is counted before the next handshake of its account is.
      for (const [i, { resolve }] of answered.entries()) setImmediate(resolve, refusals[i]);
      askNext();
    },
  };
};
