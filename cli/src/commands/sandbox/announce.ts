// What a sandbox prints when it is ready.

import type { PlannedAccount, SandboxCredentials } from '@sealpost/sandbox/accounts';
import type { Chain } from '@sealpost/sandbox/chain/chain';
import type { SandboxState } from '@sealpost/sandbox/scenario-runner';
import type { Node } from '@sealpost/server/node/node';
import { formatNumberOf } from '../../formats.ts';
import { printJson, type Session } from '../../session.ts';
import { signInLink } from '../demo/demo.ts';
import { rankedFeedIds } from '../demo/world.ts';
import { type SandboxFolder, sandboxProfile } from './folder.ts';
import { planDefaults, type SandboxPlan } from './plan.ts';

export type Announcement = {
  readonly node: Node;
  readonly credentials: SandboxCredentials;
  readonly accounts: readonly PlannedAccount[];
  readonly folder: SandboxFolder;
  readonly plan: SandboxPlan;
  readonly state: SandboxState;
  readonly chain: Chain | undefined;
  readonly hasExplorer: boolean;
  readonly json: boolean;
};

/** Prints where it is, how to read from it and how to control it; as one line of JSON if asked for. */
export async function announceSandbox(session: Session, announced: Announcement): Promise<void> {
  const { node, credentials, accounts, folder, state, chain, hasExplorer } = announced;
  const { userId, secret } = credentials;
  const streams = [...node.write.view.current().streams.values()];
  const feedIds = rankedFeedIds(streams.filter(({ status }) => status !== 'decommissioned')); // a replay's first reports are yet to come
  const wsUrl = node.url.replace(/^http/, 'ws');
  if (announced.json) {
    const { seed, start, speed } = state;
    return printJson(session, {
      url: node.url,
      wsUrl,
      opsUrl: node.opsUrl,
      userId,
      secret,
      feedIds,
      seed,
      start,
      speed,
      ...(accounts.length > 0 && {
        accounts: Object.fromEntries(
          accounts.map(({ name, ...own }) => [name, { userId: own.userId, secret: own.secret }]),
        ),
      }),
      ...(chain && { chain: toChainJson(chain) }),
    });
  }
  const sealpost = session.env.npm_command === undefined ? 'sealpost' : 'npx sealpost';
  const isDefault = node.opsUrl.endsWith(`:${planDefaults.opsPort}`);
  const at = isDefault ? '' : ` --url ${node.opsUrl}`;
  const profile = ` --profile ${sandboxProfile} --profiles ${folder.profilesFile}`;
  await session.write(`
The sandbox is ready: ${formatNumberOf(streams.length, 'stream')}, sandbox time ${state.time.slice(0, 19)}Z, speed ${state.speed}.
${hasExplorer ? `\nOpen the explorer, signed in:\n\n  ${signInLink(node.url, secret, session.nowMs())}\n` : ''}
  API      ${node.url}
  private  ${node.opsUrl}  (/sandbox /readyz /metrics)
${chain === undefined ? '' : `  chain    ${chain.rpcUrl}  (JSON-RPC, chain ID ${chain.chainId})\n`}
Read reports, in another terminal:

  ${sealpost} watch${profile}

Control it:

  ${sealpost} sandbox show${at}
  ${sealpost} sandbox set crash 30 streams=${streams[0]?.baseAsset}/${streams[0]?.quoteAsset} over=1m recover=5m${at}
  ${sealpost} sandbox set fault status=503,probability=0.2${at}
  ${sealpost} sandbox clear${at}

For your program:

  export SEALPOST_URL=${node.url}
  export SEALPOST_USER_ID=${userId}
  export SEALPOST_SECRET=${secret}
${accounts.map((one) => `\nFor ${one.name}:\n\n  export SEALPOST_USER_ID=${one.userId}\n  export SEALPOST_SECRET=${one.secret}\n`).join('')}${chain === undefined ? '' : chainExports(chain)}
`);
}

const toChainJson = ({ rpcUrl, chainId, verifier, consumer, accounts }: Chain) => ({
  rpcUrl,
  chainId,
  verifier,
  consumer,
  accounts,
});

/** The first account owns the verifier; the next two trade. */
const chainExports = ({ rpcUrl, verifier, consumer, accounts: [, buyer, seller] }: Chain): string =>
  `  export SEALPOST_RPC_URL=${rpcUrl}
  export SEALPOST_VERIFIER=${verifier}
  export SEALPOST_CONSUMER=${consumer}
${buyer?.privateKey === undefined ? '' : `  export SEALPOST_BUYER_KEY=${buyer.privateKey}\n  export SEALPOST_SELLER_KEY=${seller?.privateKey}\n`}`;
