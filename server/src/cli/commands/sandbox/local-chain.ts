// The chain of `sealpost sandbox --chain`: its signer sets are those of the sandbox, and it knows of a rotation before the new signers' first report.
import { timedOut, within } from '../../../runtime/deadline.ts';
import { type Chain, joinChain, startChain } from '../../../sandbox/chain/chain.ts';
import { EvmMissingError, loadEdr } from '../../../sandbox/chain/evm.ts';
import { EvmRequestError } from '../../../sandbox/chain/rpc-outcome.ts';
import type { AdminView } from '../../../store/admin-snapshot.ts';
import { CommandError, exitCodes } from '../../failure.ts';

/** Fails before anything is started if the EVM is not installed. */
export const requireEvm = async (): Promise<void> => {
  try {
    await loadEdr();
  } catch (error) {
    if (!(error instanceof EvmMissingError)) throw error;
    throw new CommandError(exitCodes.unavailable, error.message, { cause: error });
  }
};

type ChainParts = {
  /** A node that the user runs; without it, a local chain is started. */
  readonly url: string | undefined;
  /** 0 for any free port. */
  readonly port: number;
  readonly view: AdminView;
  readonly nowMs: () => number;
  /** Prints a line to the user. */
  readonly warn: (text: string) => void;
};

export type SandboxChain = Chain & {
  /** Registers and retires what has changed in the sandbox. Warns where it cannot; waits at most 5 s for a chain that does not answer. */
  readonly update: () => Promise<void>;
};

/** Sandbox time stands still while a change waits for the chain, and so does the end of the sandbox. */
const updateMaxMs = 5_000;

/** Starts or joins the chain with the signer sets that are not retired. */
export const openSandboxChain = async ({ url, port, view, nowMs, warn }: ChainParts): Promise<SandboxChain> => {
  const active = () => [...view.current().signerSets.values()].filter(({ retiredAt }) => retiredAt === null);
  const chain = await (url === undefined
    ? startChain({ port, signerSets: active(), nowMs })
    : joinChain(url, active()).catch((error: unknown) => {
        if (!(error instanceof EvmRequestError)) throw error;
        throw new CommandError(exitCodes.unavailable, `--chain: ${error.message}`, { cause: error });
      }));
  return { ...chain, update: createChainUpdate({ update: () => chain.updateSignerSets(active()), warn }) };
};

type UpdateParts = {
  readonly update: () => Promise<void>;
  readonly warn: (text: string) => void;
  readonly maxMs?: number;
};

/** Bounds the wait for an update. After one that took longer, later ones are not waited for until the chain answers again. */
export const createChainUpdate = ({ update, warn, maxMs = updateMaxMs }: UpdateParts): (() => Promise<void>) => {
  let isSilent = false;
  return async () => {
    const updated = update()
      .catch((error: unknown) => warn(chainWarning(error)))
      .then(() => {
        isSilent = false;
      });
    if (isSilent || (await within(maxMs, updated)) !== timedOut) return;
    isSilent = true;
    warn(
      `warning: the local chain has not answered for ${maxMs / 1_000} s. The sandbox continues; the signer sets of the chain are updated when it answers.\n`,
    );
  };
};

/** A test may take the owner's rights or ether away: its chain is behind then, and the rest of the sandbox continues. */
const chainWarning = (error: unknown): string =>
  `warning: the signer sets of the local chain are not up to date: ${error instanceof Error ? error.message : error} Start the sandbox again to repair it.\n`;
