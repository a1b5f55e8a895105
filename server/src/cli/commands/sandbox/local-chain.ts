// The chain of `sealpost sandbox --chain`: its signer sets are those of the sandbox, and it knows of a rotation before the new signers' first report.
import { type Chain, startChain } from '../../../sandbox/chain/chain.ts';
import { EvmMissingError, loadEdr } from '../../../sandbox/chain/evm.ts';
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
  /** 0 for any free port. */
  readonly port: number;
  readonly view: AdminView;
  readonly nowMs: () => number;
};

export type SandboxChain = Chain & {
  /** Registers and retires what has changed in the sandbox. */
  readonly update: () => Promise<void>;
};

/** Starts the chain with the signer sets that are not retired. */
export const openSandboxChain = async ({ port, view, nowMs }: ChainParts): Promise<SandboxChain> => {
  const active = () => [...view.current().signerSets.values()].filter(({ retiredAt }) => retiredAt === null);
  const chain = await startChain({ port, signerSets: active(), nowMs });
  return { ...chain, update: () => chain.updateSignerSets(active()) };
};
