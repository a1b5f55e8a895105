// Parses IP addresses and prefixes into 128 bits, so that every spelling of an address compares equal. An IPv4 address is its mapped
// IPv6 address (::ffff:0:0/96), which is how a socket that listens on both families reports an IPv4 peer.
import { isIPv4, isIPv6 } from 'node:net';
import { memoise } from './kept-values.ts';

const addressBits = 128;
const mappedPrefix = 0xffffn << 32n;

/** A set of addresses, asked for any spelling of one, also with a port. */
export type AddressSet = { readonly has: (address: string) => boolean };

/** An address and how many of its leading bits count. */
type AddressPrefix = { readonly bits: bigint; readonly length: number };

/** The 128 bits of an address; undefined for any other text, and for an address with a zone, which names an interface of one machine. */
const parseAddress = (text: string): bigint | undefined => {
  if (isIPv4(text)) return mappedPrefix | ipv4Bits(text);
  return isIPv6(text) && !text.includes('%') ? ipv6Bits(text) : undefined;
};

const ipv4Bits = (text: string): bigint => text.split('.').reduce((bits, octet) => (bits << 8n) | BigInt(octet), 0n);

const ipv6Bits = (text: string): bigint => {
  // The last 32 bits may be in the notation of IPv4.
  const groups = text.replace(/[0-9.]{7,15}$/, (tail) => {
    const bits = ipv4Bits(tail);
    return `${(bits >> 16n).toString(16)}:${(bits & 0xffffn).toString(16)}`;
  });
  const [head = [], tail = []] = groups.split('::').map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => '0');
  return [...head, ...zeros, ...tail].reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n);
};

const parsePrefix = (text: string): AddressPrefix | undefined => {
  const [, address = '', digits] = /^([^/]+)(?:\/([0-9]{1,3}))?$/.exec(text) ?? [];
  const bits = parseAddress(address);
  if (bits === undefined) return undefined;
  const familyBits = isIPv4(address) ? 32 : addressBits;
  const length = digits === undefined ? familyBits : Number(digits);
  return length > familyBits ? undefined : { bits, length: addressBits - familyBits + length };
};

/** An address as proxies write it, `192.0.2.1:80` or `[2001:db8::1]:80`, without brackets and port. */
const withoutPort = (text: string): string => {
  const [, bracketed, ipv4] = /^(?:\[([^\]]+)\](?::[0-9]+)?|([0-9.]+):[0-9]+)$/.exec(text) ?? [];
  return bracketed ?? ipv4 ?? text;
};

/** Whether the text is an address, or a prefix such as 10.0.0.0/8 or fd00::/8. */
export const isAddressOrPrefix = (text: string): boolean => parsePrefix(text) !== undefined;

/** The addresses within any of these addresses and prefixes; throws for a text that is neither. */
export function createAddressSet(texts: readonly string[]): AddressSet {
  const prefixes = texts.map((text) => {
    const prefix = parsePrefix(text);
    if (prefix === undefined) throw new Error(`${text} is not an IP address or prefix.`);
    return prefix;
  });
  const has = memoise((address): boolean => {
    const bits = parseAddress(withoutPort(address));
    return bits !== undefined && prefixes.some((prefix) => matches(prefix, bits));
  });
  return { has };
}

const matches = (prefix: AddressPrefix, bits: bigint): boolean => {
  const ignored = BigInt(addressBits - prefix.length);
  return prefix.bits >> ignored === bits >> ignored;
};

/** An address as logs show it: without port and zone, IPv4 also where a socket reports it as IPv6. */
export const shownAddressOf = memoise((text: string): string =>
  withoutPort(text)
    .split('%', 1)
    .join('')
    .replace(/^::ffff:(?=[0-9.]+$)/i, ''),
);

/**
 * What limits count an address by: an IPv4 address, also a mapped one, by itself, and an IPv6 address by its /64, which one customer
 * gets. A port and a zone are ignored. Undefined for a text that is not an address.
 */
export const limitedNetworkOf = memoise((text: string): string | undefined => {
  const bits = parseAddress(withoutPort(text).split('%', 1).join(''));
  if (bits === undefined) return undefined;
  const groups = Array.from({ length: 8 }, (_, i) => Number((bits >> BigInt(112 - 16 * i)) & 0xffffn));
  if (bits >> 32n !== 0xffffn)
    return groups
      .slice(0, 4)
      .map((group) => group.toString(16))
      .join(':');
  return groups
    .slice(6)
    .flatMap((group) => [group >> 8, group & 255])
    .join('.');
});
