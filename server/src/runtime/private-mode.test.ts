import { expect, test } from 'vitest';
import { isOpenToOthers, isTlsKeyOpenToOthers } from './private-mode.ts';

test.each([
  [0o600, 1_000, false],
  [0o400, 0, false],
  [0o640, 0, false],
  [0o440, 0, false],
  [0o640, 1_000, true],
  [0o660, 0, true],
  [0o644, 0, true],
  [0o604, 0, true],
  [0o601, 1_000, true],
])('private mode: a TLS key with mode %o of user %i is open to others: %s', (mode, uid, isOpen) => {
  expect(isTlsKeyOpenToOthers('/etc/key.pem', { mode: 0o100000 | mode, uid }, {})).toBe(isOpen);
});

test('private mode: files from systemd belong to its service alone; any other file is open if others have any permission', () => {
  const env = { CREDENTIALS_DIRECTORY: '/run/credentials/sealpost.service' };
  expect(isTlsKeyOpenToOthers('/run/credentials/sealpost.service/tls', { mode: 0o444, uid: 1 }, env)).toBe(false);
  expect(isOpenToOthers('/run/credentials/sealpost.service/key', 0o440, env)).toBe(false);
  expect(isOpenToOthers('/run/credentials/other.service/key', 0o440, env)).toBe(true);
});
