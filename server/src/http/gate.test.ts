import { expect, test } from 'vitest';
import { createAddressSet } from '../runtime/ip-address.ts';
import { countedAddressOf } from './gate.ts';

const proxies = createAddressSet(['fd00:1:2:3::10', '10.0.0.0/24']);

test('gate: a proxy on IPv6 is trusted by its full address, and its neighbors of the same /64 are not', () => {
  expect(countedAddressOf(proxies, 'fd00:1:2:3:0::10', '203.0.113.9')).toBe('203.0.113.9');
  expect(countedAddressOf(proxies, 'fd00:1:2:3::11', '203.0.113.9')).toBe('fd00:1:2:3');
  expect(countedAddressOf(proxies, '::ffff:10.0.0.77', '198.51.100.1, 2001:db8::1')).toBe('2001:db8:0:0');
  expect(countedAddressOf(proxies, '10.0.1.77', '203.0.113.9')).toBe('10.0.1.77');
});

test('gate: an entry of a proxy counts without its port, and one that is not an address does not count', () => {
  expect(countedAddressOf(proxies, '10.0.0.1', '203.0.113.9:4711')).toBe('203.0.113.9');
  for (const text of ['unknown', '', '203.0.113', 'x'.repeat(8_000)])
    expect(countedAddressOf(proxies, '10.0.0.1', text), text.slice(0, 20)).toBe('10.0.0.1');
  expect(countedAddressOf(proxies, '', undefined)).toBe('');
});
