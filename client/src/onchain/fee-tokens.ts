// The addresses of the tokens that pay for verification, by chain.
import type { Hex } from '@sealpost/protocol';

/**
 * Chain ID → addresses of the wrapped native token and of LINK. For other chains, `i_nativeAddress()` and `i_linkAddress()` of the fee manager
 * return them.
 */
export const feeTokens = {
  /** Ethereum */
  1: {
    native: '0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2',
    link: '0x514910771af9ca656af840dff83e8264ecf986ca',
  },
  /** Base */
  8453: {
    native: '0x4200000000000000000000000000000000000006',
    link: '0x88fb150bdc53a65fe94dea0c9ba0a6daf8c6e196',
  },
  /** Arbitrum One */
  42161: {
    native: '0x82af49447d8a07e3bd95bd0d56f35241523fbab1',
    link: '0xf97f4df75117a78c1a5a0dbb814af92458539fb4',
  },
} as const satisfies Readonly<Record<number, { readonly native: Hex; readonly link: Hex }>>;
