import { expect, test } from 'vitest';
import { createAddressSet, isAddressOrPrefix, limitedNetworkOf } from './ip-address.ts';

test('addresses: every spelling of a trusted IPv6 address is that address, and its neighbors are not', () => {
  const set = createAddressSet(['fd00:1:2:3::10', '2001:DB8::1']);
  for (const same of [
    'fd00:1:2:3::10',
    'fd00:1:2:3:0:0:0:10',
    'FD00:0001:2:3::0010',
    '2001:db8:0:0::1',
    '2001:db8::0.0.0.1',
  ])
    expect(set.has(same), same).toBe(true);
  for (const other of [
    'fd00:1:2:3::11',
    'fd00:1:2:3::',
    'fd00:1:2:3',
    '2001:db8::2',
    '::1',
    '0.0.0.1',
    '',
    'fd00:1:2:3::10%eth0',
  ])
    expect(set.has(other), other).toBe(false);
});

test('addresses: an IPv4 address and its mapped IPv6 address are one, in either place', () => {
  for (const trusted of ['192.0.2.1', '::ffff:192.0.2.1', '::FFFF:c000:201']) {
    const set = createAddressSet([trusted]);
    for (const same of ['192.0.2.1', '::ffff:192.0.2.1', '::ffff:c000:201', '0:0:0:0:0:ffff:192.0.2.1'])
      expect(set.has(same), `${trusted} ${same}`).toBe(true);
    for (const other of ['192.0.2.2', '::192.0.2.1', '::ffff:0:192.0.2.1']) expect(set.has(other), other).toBe(false);
  }
});

test('addresses: a prefix contains the addresses with its leading bits', () => {
  const set = createAddressSet(['10.1.0.0/16', 'fd00:1:2::/47', '198.51.100.7/31']);
  for (const inside of [
    '10.1.0.0',
    '10.1.255.255',
    '::ffff:10.1.2.3',
    'fd00:1:2::',
    'fd00:1:3:ffff::1',
    '198.51.100.6',
  ])
    expect(set.has(inside), inside).toBe(true);
  for (const outside of ['10.0.255.255', '10.2.0.0', 'fd00:1:4::', 'fd00:1:1:ffff::', '198.51.100.8', '::10.1.0.0'])
    expect(set.has(outside), outside).toBe(false);
  expect(createAddressSet(['0.0.0.0/0']).has('fd00::1')).toBe(false);
});

test('addresses: anything but an address or a prefix is rejected', () => {
  for (const text of [
    'fd00:1:2:3',
    '10.0.0',
    '010.0.0.1',
    '1.2.3.4/33',
    'fd00::/129',
    'fd00::/',
    '/8',
    '10.0.0.0/8/8',
    'proxy',
    '',
    'fe80::1%eth0',
    ':::',
    '1.2.3.4:80',
    '[::1]',
    '10.0.0.0/-1',
  ])
    expect(isAddressOrPrefix(text), text).toBe(false);
});

test('addresses: limits count IPv4 by address and IPv6 by /64, whatever the spelling, the port or the zone', () => {
  for (const text of ['192.0.2.1', '::ffff:192.0.2.1', '::ffff:c000:201', '192.0.2.1:4711', '[::ffff:192.0.2.1]:80'])
    expect(limitedNetworkOf(text), text).toBe('192.0.2.1');
  for (const text of [
    '2001:db8:0:1::5',
    '2001:0DB8::1:5:0:0:0',
    '[2001:db8:0:1::6]',
    '[2001:db8:0:1::7]:443',
    '2001:db8::1:0:0:0.0.0.9',
  ])
    expect(limitedNetworkOf(text), text).toBe('2001:db8:0:1');
  expect(limitedNetworkOf('fe80::1%eth0')).toBe('fe80:0:0:0');
  for (const text of ['', 'unknown', '_hidden', '1.2.3', 'fd00:1:2:3'])
    expect(limitedNetworkOf(text), text).toBeUndefined();
});
