// A liquidation bot: reads the price of the collateral, checks who signed it and how old it is, and names the loans that are under water.
// It decides nothing on a price that it cannot trust. Its tests: npx vitest run examples/testing/liquidation-bot.test.ts
import { type Client, SealpostError, type SignerSetsJson, verify } from '@sealpost/client';

export type Loan = { readonly id: string; readonly collateral: bigint; readonly debt: bigint };

export type Decision =
  | { readonly act: 'liquidate'; readonly loans: readonly string[]; readonly price: bigint }
  | { readonly act: 'wait'; readonly why: string };

export type Bot = {
  readonly client: Client;
  /** Whose signatures count: those that the oracle network publishes, kept with the bot. Asked for them, a server could name its own. */
  readonly signers: SignerSetsJson;
  readonly stream: string;
  /** A price that is older is not used. */
  readonly ageMaxSeconds: number;
  readonly now: () => Date;
};

const one = 10n ** 18n;

/** Looks once. Collateral and debt have 18 decimals; a loan is under water below 120 % of its debt. */
export const decide = async (
  { client, signers, stream, ageMaxSeconds, now }: Bot,
  loans: readonly Loan[],
): Promise<Decision> => {
  try {
    const { report } = await client.latest(stream);
    const verdict = verify(report, signers);
    if (!verdict.ok || verdict.decoded === undefined)
      return { act: 'wait', why: 'the price is not signed by a quorum' };
    const ageSeconds = now().getTime() / 1_000 - report.observationsTimestamp;
    if (ageSeconds > ageMaxSeconds) return { act: 'wait', why: `the price is ${Math.round(ageSeconds)} s old` };
    const { price } = verdict.decoded;
    const underWater = loans.filter(({ collateral, debt }) => (collateral * price) / one < (debt * 12n) / 10n);
    return { act: 'liquidate', loans: underWater.map(({ id }) => id), price };
  } catch (error) {
    if (error instanceof SealpostError) return { act: 'wait', why: `the service answers ${error.code}` };
    throw error;
  }
};
