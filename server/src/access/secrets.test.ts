import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { acquireLock } from '../runtime/process-lock.ts';
import { addOpeningKey, createKeyFile, openKeyFile, openSecretBox } from './key.ts';
import { createSecret, createSecretBox, parseKey, SecretBoxError } from './secrets.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-key-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const [user, stranger] = ['123e4567-e89b-42d3-a456-426614174000', '123e4567-e89b-42d3-a456-426614174001'];
const box = createSecretBox(Buffer.alloc(32, 1));
const failure = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    if (error instanceof SecretBoxError) return error.message;
  }
  return 'no SecretBoxError';
};

test('secrets: a sealed secret opens again, is different each time, and does not contain the secret', () => {
  for (const secret of ['', 'a', 'sécret ✓', createSecret(), 'x'.repeat(10_000)]) {
    const [one, two] = [box.seal(user, secret), box.seal(user, secret)];
    expect([box.open(user, one), box.open(user.toUpperCase(), two)]).toEqual([secret, secret]);
    expect(one).not.toBe(two);
  }
  const sealed = box.seal(user, 'canary-canary');
  expect(Buffer.from(sealed.split('.')[1] ?? '', 'base64url').includes('canary')).toBe(false);
  expect(sealed).toMatch(new RegExp(`^${box.keyId}\\.[\\w-]+$`));
});

test('secrets: another key, another user and every altered byte are rejected, and the error does not show the secret', () => {
  const sealed = box.seal(user, 'canary');
  const other = createSecretBox(Buffer.alloc(32, 2));
  expect(failure(() => other.open(user, sealed))).toBe(
    `A secret was sealed with key ${box.keyId}, but this key is ${other.keyId}. Use the key it was sealed with.`,
  );
  const altered = 'A stored secret cannot be opened: it was altered, or belongs to another user.';
  expect(failure(() => box.open(stranger, sealed))).toBe(altered);
  const bytes = Buffer.from(sealed.slice(box.keyId.length + 1), 'base64url');
  for (const [i, byte] of bytes.entries()) {
    const changed = Buffer.from(bytes);
    changed[i] = byte ^ 1;
    expect(
      failure(() => box.open(user, `${box.keyId}.${changed.toString('base64url')}`)),
      `byte ${i}`,
    ).toBe(altered);
  }
  for (let length = 0; length < bytes.length; length++) {
    const cut = bytes.subarray(0, length).toString('base64url');
    expect(
      failure(() => box.open(user, `${box.keyId}.${cut}`)),
      `${length} bytes`,
    ).toBe(altered);
  }
});

test('secrets: a shortened authentication tag is rejected', () => {
  const sealed = Buffer.from(box.seal(user, '').slice(box.keyId.length + 1), 'base64url');
  for (const length of [12 + 4, 12 + 8, 12 + 12, 12 + 15]) {
    const text = `${box.keyId}.${sealed.subarray(0, length).toString('base64url')}`;
    expect(
      failure(() => box.open(user, text)),
      `${length} bytes`,
    ).not.toBe('no SecretBoxError');
  }
});

test('secrets: a key is 64 hex digits or base64 of 32 bytes, and nothing else', () => {
  const key = Buffer.alloc(32, 0xab);
  for (const text of [key.toString('hex'), key.toString('hex').toUpperCase(), ` ${key.toString('base64')}\n`])
    expect(parseKey(text)).toEqual(key);
  for (const text of ['', 'ab', 'ab'.repeat(31), 'ab'.repeat(33), Buffer.alloc(31).toString('base64')])
    expect(failure(() => parseKey(text))).toBe('The key-encryption key must be 32 bytes, as 64 hex digits or base64.');
  expect(failure(() => createSecretBox(Buffer.alloc(16)))).toBe('The key-encryption key has 16 bytes, expected 32.');
});

test('secrets: new ones are 256 random bits as text', () => {
  const secrets = Array.from({ length: 100 }, createSecret);
  expect(new Set(secrets).size).toBe(100);
  for (const secret of secrets) expect(secret).toMatch(/^[\w-]{43}$/);
});

test('key: a file is created once, with access for its owner only, and never changed', () => {
  const path = join(folder, 'deep', 'new.key');
  expect([createKeyFile(path), createKeyFile(path)]).toEqual([true, false]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const text = readFileSync(path, 'utf8');
  expect(text).toMatch(/^[0-9a-f]{64}\n$/);
  expect(openKeyFile(path).keyId).toBe(createSecretBox(parseKey(text)).keyId);
  writeFileSync(path, 'something else');
  expect([createKeyFile(path), readFileSync(path, 'utf8')]).toEqual([false, 'something else']);
});

test('key: the setting overrides the file, and a missing, open or bad file is an error that says what to do', () => {
  const keyFile = join(folder, 'one.key');
  expect(failure(() => openSecretBox({ key: undefined, keyFile }))).toBe(
    `No key-encryption key in ${keyFile}. Create one with: sealpost init.`,
  );
  expect(openSecretBox({ key: '01'.repeat(32), keyFile }).keyId).toBe(box.keyId);
  createKeyFile(keyFile);
  expect(openSecretBox({ key: '01'.repeat(32), keyFile }).keyId).toBe(box.keyId);
  expect(openSecretBox({ key: undefined, keyFile }).keyId).not.toBe(box.keyId);
  for (const mode of [0o644, 0o640, 0o604, 0o620, 0o660]) {
    chmodSync(keyFile, mode);
    expect(failure(() => openSecretBox({ key: undefined, keyFile }))).toBe(
      `The key file ${keyFile} is accessible to other users (mode ${mode.toString(8)}). Run: chmod 600 ${keyFile}.`,
    );
  }
  chmodSync(keyFile, 0o400);
  expect(openSecretBox({ key: undefined, keyFile }).keyId).toMatch(/^[0-9a-f]{16}$/);
  const inner = join(folder, 'folder.key');
  mkdirSync(inner, { mode: 0o755 });
  expect(failure(() => openSecretBox({ key: undefined, keyFile: inner }))).toBe(`Not a file but a folder: ${inner}.`);
  const bad = join(folder, 'bad.key');
  writeFileSync(bad, 'not a key\n', { mode: 0o600 });
  expect(failure(() => openSecretBox({ key: undefined, keyFile: bad }))).toBe(
    `${bad}: The key-encryption key must be 32 bytes, as 64 hex digits or base64.`,
  );
});

test('key: a box that was opened from a file opens what a key sealed that the file got later', async () => {
  const [keyFile, next] = [join(folder, 'running.key'), join(folder, 'next.key')];
  for (const path of [keyFile, next]) createKeyFile(path);
  let clockMs = 0;
  const running = openKeyFile(keyFile, () => clockMs);
  const sealed = openKeyFile(next).seal(user, 'later');
  expect(failure(() => running.open(user, sealed))).toMatch(
    /^A secret was sealed with key [0-9a-f]{16}, but this key is/,
  );
  expect([await addOpeningKey(keyFile, next), await addOpeningKey(keyFile, next)]).toEqual([true, true]);
  clockMs += 999; // it is read again once a second at most, however often such an account asks
  expect(failure(() => running.open(user, sealed))).toContain('A secret was sealed with key');
  clockMs += 1;
  expect([running.open(user, sealed), running.open(user, running.seal(user, 'before'))]).toEqual(['later', 'before']);
  expect(readFileSync(keyFile, 'utf8')).toMatch(/^[0-9a-f]{64}\n[0-9a-f]{64}\n$/);
  expect([statSync(keyFile).mode & 0o777, openKeyFile(keyFile).keyId]).toEqual([0o600, running.keyId]);
  renameSync(next, keyFile);
  expect([openKeyFile(keyFile).open(user, sealed), running.open(user, sealed)]).toEqual(['later', 'later']);
});

test.skipIf(process.getuid?.() !== 0)(
  'key: a file that root adds a key to keeps its owner and mode, and so does the next file',
  async () => {
    const [keyFile, next] = [join(folder, 'owned.key'), join(folder, 'owned-next.key')];
    createKeyFile(keyFile);
    chownSync(keyFile, 65_534, 65_533);
    chmodSync(keyFile, 0o400);
    expect(createKeyFile(next, keyFile)).toBe(true);
    expect(await addOpeningKey(keyFile, next)).toBe(true);
    for (const path of [keyFile, next]) {
      const { uid, gid, mode } = statSync(path);
      expect([uid, gid, mode & 0o777], path).toEqual([65_534, 65_533, 0o400]);
    }
    expect(readFileSync(keyFile, 'utf8')).toMatch(/^[0-9a-f]{64}\n[0-9a-f]{64}\n$/);
  },
);

test('key: the next file is made for its owner alone where the file in use is open to others or missing', () => {
  const [open, next, third] = ['open.key', 'open-next.key', 'open-third.key'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(open, '', { mode: 0o600 });
  chmodSync(open, 0o644);
  expect([createKeyFile(next, open), createKeyFile(third, join(folder, 'missing.key'))]).toEqual([true, true]);
  for (const path of [next, third]) expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('key: a link to a key file stays a link, and the file that it leads to gets the key', async () => {
  const home = mkdtempSync(join(folder, 'linked-'));
  const [real, link, next] = [join(home, 'vault', 'real.key'), join(home, 'sealpost.key'), join(home, 'next.key')];
  for (const path of [real, next]) createKeyFile(path);
  symlinkSync('vault/real.key', link);
  const keys = [real, next].map((path) => readFileSync(path, 'utf8')).join('');
  expect(await addOpeningKey(link, next)).toBe(true);
  expect([lstatSync(link).isSymbolicLink(), readFileSync(real, 'utf8')]).toEqual([true, keys]);
  expect([readdirSync(home).sort(), readdirSync(join(home, 'vault'))]).toEqual([
    ['next.key', 'sealpost.key', 'vault'],
    ['real.key'],
  ]);
});

test('key: of several keys that are added at once none is lost', async () => {
  const home = mkdtempSync(join(folder, 'at-once-'));
  const [keyFile = '', ...added] = ['sealpost.key', '1.key', '2.key', '3.key'].map((name) => join(home, name));
  for (const path of [keyFile, ...added]) createKeyFile(path);
  await Promise.all(added.map((path) => addOpeningKey(keyFile, path, 600_000)));
  const keyIds = openKeyFile(keyFile).keyIds();
  for (const path of added) expect(keyIds).toContain(openKeyFile(path).keyId);
});

test('key: while another process changes the file, none is added, and the error says what to do', async () => {
  const home = mkdtempSync(join(folder, 'busy-'));
  const [keyFile, next] = [join(home, 'sealpost.key'), join(home, 'next.key')];
  for (const path of [keyFile, next]) createKeyFile(path);
  const before = readFileSync(keyFile, 'utf8');
  const unlock = await acquireLock(`${keyFile}.lock`, () => new Error('taken'));
  const busy = `Process ${process.pid} is changing ${keyFile}. Wait for it and run this command again.`;
  await expect(addOpeningKey(keyFile, next, 0)).rejects.toThrow(busy);
  expect(readFileSync(keyFile, 'utf8')).toBe(before);
  unlock();
});
