import { expect, test } from 'vitest';
import { createAddressSet } from '../runtime/ip-address.ts';
import { clientAddressOf, countedAddressOf } from './admission-control.ts';

const proxies = createAddressSet(['fd00:1:2:3::10', '10.0.0.0/24']);
const countedOf = (peer: string, forwardedFor: string | undefined): string =>
  countedAddressOf(clientAddressOf(proxies, peer, forwardedFor));

test('admission control: a proxy on IPv6 is trusted by its full address, and its neighbors of the same /64 are not', () => {
  expect(countedOf('fd00:1:2:3:0::10', '203.0.113.9')).toBe('203.0.113.9');
  expect(countedOf('fd00:1:2:3::11', '203.0.113.9')).toBe('fd00:1:2:3');
  expect(countedOf('::ffff:10.0.0.77', '198.51.100.1, 2001:db8::1')).toBe('2001:db8:0:0');
  expect(countedOf('10.0.1.77', '203.0.113.9')).toBe('10.0.1.77');
});

test('admission control: an entry of a proxy counts without its port, and one that is not an address does not count', () => {
  expect(countedOf('10.0.0.1', '203.0.113.9:4711')).toBe('203.0.113.9');
  for (const text of ['unknown', '', '203.0.113', 'x'.repeat(8_000)])
    expect(countedOf('10.0.0.1', text), text.slice(0, 20)).toBe('10.0.0.1');
  expect(countedOf('', undefined)).toBe('');
});

test('admission control: through several proxies, the last entry that is not one of them counts, whatever a client wrote before it', () => {
  for (const [forwardedFor, counted] of [
    ['203.0.113.9, 10.0.0.2', '203.0.113.9'],
    ['198.51.100.1, 10.0.0.3, 203.0.113.9, 10.0.0.2', '203.0.113.9'],
    ['unknown, 203.0.113.9 ,10.0.0.2:4711, [fd00:1:2:3::10]:80', '203.0.113.9'],
    ['2001:db8::1, ::ffff:10.0.0.2', '2001:db8:0:0'],
    // A neighbor of the proxy on IPv6 is a client.
    ['203.0.113.9, fd00:1:2:3::11, 10.0.0.2', 'fd00:1:2:3'],
    // Every hop is a proxy: one of them asked.
    ['10.0.0.4, 10.0.0.3', '10.0.0.4'],
  ] as const)
    expect(countedOf('10.0.0.1', forwardedFor), forwardedFor).toBe(counted);
});

test('admission control: at an entry that is not an address, the proxy that passed it on counts', () => {
  for (const bad of ['unknown', '', '_hidden', '203.0.113'])
    expect(countedOf('10.0.0.1', `203.0.113.9, ${bad}, 10.0.0.3, 10.0.0.2`), bad).toBe('10.0.0.3');
});

test('admission control: of a long header, the last 16 entries are read', () => {
  const hops = (count: number) => `203.0.113.9${', 10.0.0.2'.repeat(count)}`;
  expect(countedOf('10.0.0.1', hops(15))).toBe('203.0.113.9');
  expect(countedOf('10.0.0.1', hops(16))).toBe('10.0.0.2');
  expect(countedOf('10.0.0.1', hops(1_500))).toBe('10.0.0.2');
});
