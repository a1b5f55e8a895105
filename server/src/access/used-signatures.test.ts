import { expect, test } from 'vitest';
import { createUsedSignatures } from './used-signatures.ts';

const rules = { skewMaxMs: 5_000, socketsPerAccount: 20 };
const shake = (signature: string, origin?: string, userId = 'one') => ({ userId, signature, origin });

test('used signatures: each opens one connection, or one for each origin, and is kept for as long as it may be valid', () => {
  let nowMs = 1;
  const use = createUsedSignatures(rules, () => nowMs);
  expect([use(shake('a')), use(shake('a')), use(shake('a', '001')), use(shake('b'))]).toEqual([
    undefined,
    'signature_used',
    'signature_used',
    undefined,
  ]);
  expect([use(shake('c', '001')), use(shake('c', '002')), use(shake('c', '001')), use(shake('c'))]).toEqual([
    undefined,
    undefined,
    'signature_used',
    'signature_used',
  ]);
  nowMs += 10_000; // signed 5 s ahead, it is still valid now
  expect([use(shake('a')), use(shake('c', '002'))]).toEqual(['signature_used', 'signature_used']);
  nowMs += 1_000;
  expect([use(shake('a')), use(shake('a'))]).toEqual([undefined, 'signature_used']);
});

test('used signatures: a full table refuses new handshakes and forgets none, for one account and for all together', () => {
  let nowMs = 0;
  const use = createUsedSignatures(rules, () => nowMs);
  const useMany = (count: number, userId: string) => {
    for (let i = 0; i < count; i++) if (use(shake(`${userId} ${i}`, undefined, userId)) !== undefined) return i;
    return count;
  };
  expect(useMany(2_000, 'greedy')).toBe(1_020);
  expect([use(shake('more', undefined, 'greedy')), use(shake('greedy 0'))]).toEqual([
    'too_many_sockets',
    'signature_used',
  ]);
  expect(use(shake('its own', undefined, 'modest'))).toBe(undefined);
  let all = 1_021;
  for (let account = 0; all < 65_536; account++) all += useMany(1_000, `account ${account}`);
  expect([use(shake('another', undefined, 'late')), use(shake('its own'))]).toEqual(['overloaded', 'signature_used']);
  nowMs += 11_000;
  expect([use(shake('another', undefined, 'late')), useMany(2_000, 'greedy')]).toEqual([undefined, 1_020]);
});
