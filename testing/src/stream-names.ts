// Finds a stream of the sandbox by a pair, a full name or a feed ID (D98).
import { explainMatch, matchStreams } from '@sealpost/protocol';
import { SandboxError, unexpected } from 'sealpost/sandbox';
import type { ChosenStream } from './options.ts';

export const createStreamNames = (chosen: readonly ChosenStream[]) => {
  const entries = chosen.map(({ stream }) => stream);
  const find = (argument: string, name: unknown): ChosenStream => {
    if (typeof name !== 'string') throw unexpected(argument, name, "a stream such as 'ETH/USD'");
    const match = matchStreams(name, entries);
    if (match.found === 'one') return chosen.find(({ stream }) => stream === match.stream) as ChosenStream; // it is one of them
    const streams = chosen.map(({ asked }) => asked).join(', ');
    const known = match.found === 'none' ? ` This sandbox was started with: ${streams}.` : '';
    throw new SandboxError(argument, `${explainMatch(name, match)}${known}`);
  };
  return {
    find,
    /** As `find`, but only streams whose reports are pushed. */
    findPushed: (argument: string, name: unknown): ChosenStream => {
      const found = find(argument, name);
      if (!found.isSimulated) return found;
      throw new SandboxError(
        argument,
        `${found.asked} follows a simulated price: use advance. To push its reports, list it in streams instead of simulated.`,
      );
    },
  };
};
