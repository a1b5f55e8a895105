// The chain of `sealpost sandbox --chain`: its signer sets are those of the sandbox, and it knows of a rotation before the new signers' first report.

import { type Chain, joinChain, startChain } from '@sealpost/sandbox/chain/chain';
import { RpcError } from '@sealpost/sandbox/chain/evm';
import { timedOut, within } from '@sealpost/server/runtime/deadline';
import type { AdminView } from '@sealpost/server/store/admin-snapshot';
import { CommandError, exitCodes } from '../../failure.ts';

/** Of `peerDependencies`, too. */
const edrPackage = '@nomicfoundation/edr@0.13.0';

/** Fails before anything is started if the EVM is not installed, or not for this platform. */
export async function requireEvm(load: () => Promise<unknown> = () => import('@nomicfoundation/edr')): Promise<void> {
  try {
    await load();
  } catch (cause) {
    const isMissing = Object(cause).code === 'ERR_MODULE_NOT_FOUND';
    const what = isMissing ? 'is not installed' : `cannot be loaded (${Object(cause).message})`;
    throw new CommandError(
      exitCodes.unavailable,
      `The local chain needs the package @nomicfoundation/edr, which ${what}. Install it next to sealpost: npm install ${edrPackage} (with -g if sealpost was installed with -g).`,
      { cause },
    );
  }
}

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
export async function openSandboxChain({ url, port, view, nowMs, warn }: ChainParts): Promise<SandboxChain> {
  const active = () => [...view.current().signerSets.values()].filter(({ retiredAt }) => retiredAt === null);
  const chain = await (url === undefined
    ? startChain({ port, signerSets: active(), nowMs })
    : joinChain(url, active()).catch((error: unknown) => {
        if (!(error instanceof RpcError)) throw error;
        throw new CommandError(exitCodes.unavailable, `--chain: ${error.message}`, { cause: error });
      }));
  return { ...chain, update: createChainUpdate({ update: () => chain.updateSignerSets(active()), warn }) };
}

type UpdateParts = {
  readonly update: () => Promise<void>;
  readonly warn: (text: string) => void;
  readonly maxMs?: number;
};

/** Bounds the wait for an update. After one that took longer, later ones are not waited for until the chain answers again. */
export function createChainUpdate({ update, warn, maxMs = updateMaxMs }: UpdateParts): () => Promise<void> {
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
}

/** A test may take the owner's rights or ether away: its chain is behind then, and the rest of the sandbox continues. */
const chainWarning = (error: unknown): string =>
  `warning: the signer sets of the local chain are not up to date: ${error instanceof Error ? error.message : error} Start the sandbox again to repair it.\n`;
