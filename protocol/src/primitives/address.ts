// Addresses on EVM chains: signers and fee tokens.
import { malformedArgument } from '../errors.ts';

/** 20 bytes as `0x` and 40 lower-case hex digits. */
export type Address = `0x${string}`;

/** Parses an address in any case, checksummed or not; the result is lower case. */
export function parseAddress(raw: unknown, argument: string): Address {
  if (typeof raw === 'string' && /^0x[0-9a-fA-F]{40}$/.test(raw)) return raw.toLowerCase() as Address; // it matches the pattern
  throw malformedArgument(argument, raw, 'an address, 0x and 40 hex digits');
}
