// Finds a stream of the sandbox by what a test calls it: the text of the options, a pair, a full name or a feed ID.
import { explainMatch, matchStreams } from '@sealpost/protocol';
import { SandboxError, unexpected } from './errors.ts';
import type { ChosenStream } from './options.ts';

export const createStreamNames = (chosen: readonly ChosenStream[]) => {
  const entries = chosen.map(({ stream }) => stream);
  const find = (argument: string, name: unknown): ChosenStream => {
    if (typeof name !== 'string') throw unexpected(argument, name, "a stream such as 'ETH/USD'");
    const same = chosen.filter(({ asked }) => asked.toLowerCase() === name.trim().toLowerCase());
    const match = matchStreams(name, entries);
    const found =
      same.length === 1
        ? same[0]
        : match.found === 'one'
          ? chosen.find((one) => one.stream === match.stream)
          : undefined;
    if (found !== undefined) return found;
    const why = match.found === 'one' ? '' : explainMatch(name, match);
    const known = chosen.map(({ asked }) => asked).join(', ');
    throw new SandboxError(argument, `${why} This sandbox was started with: ${known}.`);
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
