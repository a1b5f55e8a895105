// Key files: one or several keys that seal the secrets of accounts. The first byte chooses: a file, or the key as a setting.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addOpeningKey, createKeyFile, openKeyFile, openSecretBox } from '../../../server/src/access/key.ts';
import { type SecretBox, SecretBoxError } from '../../../server/src/access/secrets.ts';
import { outcomeOf, shapeOf, type Target } from '../target.ts';

const userId = 'ba2d3a9e-7c1f-4a53-9d0c-0f4f6f2f6a11';
const hex = 'a3'.repeat(32);
const base64 = Buffer.from(hex, 'hex').toString('base64');
const other = '5b'.repeat(32);

const seeds = [
  hex,
  `${hex}\n`,
  base64,
  `${hex}\n${other}\n`,
  `${base64}\r\n${other}`,
  `${hex.toUpperCase()}\n\n${hex}`,
  '',
];

/** What the box seals it opens, and nothing else of it is accepted. */
const requireBox = (box: SecretBox): void => {
  const sealed = box.seal(userId, 'a secret');
  assert.equal(box.open(userId, sealed), 'a secret', 'a sealed secret is another one when it is opened');
  assert.ok(sealed.startsWith(`${box.keyId}.`), 'a sealed secret does not name its key');
  const altered = `${sealed.slice(0, -1)}${sealed.endsWith('A') ? 'B' : 'A'}`;
  const forged = outcomeOf(() => box.open(userId, altered), [SecretBoxError]);
  assert.ok('error' in forged || forged.value === 'a secret', 'an altered secret is opened'); // the last digit may have no meaning
};

/** An error is shown in logs and terminals: no part of a key may be in it. */
const requireHidden = ({ message }: Error, input: Buffer): void => {
  for (const [word] of input.toString('utf8').matchAll(/[0-9A-Za-z+/]{16,}/g))
    assert.ok(!message.includes(word.slice(0, 16)), 'an error shows a part of the key');
};

export const openKeys = async (): Promise<Target> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-fuzz-keys-'));
  const [path, next] = [join(folder, 'sealpost.key'), join(folder, 'next.key')];
  createKeyFile(next);
  return {
    seeds: seeds.flatMap((text) => [Buffer.from(`f${text}`), Buffer.from(`s${text}`)]),
    words: ['\n', '\r\n', ' ', '=', '\ufeff', '\0', hex, base64, '-----BEGIN PRIVATE KEY-----', '0x'],
    inputBytesMax: 4_096,
    run: async (input) => {
      const content = input.subarray(1);
      if (input[0] === 0x73) {
        const box = outcomeOf(() => openSecretBox({ key: content.toString('utf8'), keyFile: '' }), [SecretBoxError]);
        if ('value' in box) requireBox(box.value);
        else requireHidden(box.error, content);
        return 'value' in box ? 'setting' : shapeOf(box.error.message);
      }
      writeFileSync(path, content, { mode: 0o600 });
      const opened = outcomeOf(() => openKeyFile(path), [SecretBoxError]);
      if ('error' in opened) {
        requireHidden(opened.error, content);
        assert.deepEqual(readFileSync(path), Buffer.from(content), 'a file that was refused is changed');
        return shapeOf(opened.error.message.replaceAll(path, ''));
      }
      const box = opened.value;
      requireBox(box);
      const sealed = box.seal(userId, 'from before');
      assert.ok(await addOpeningKey(path, next), 'a key cannot be added');
      const both = openKeyFile(path);
      assert.deepEqual([both.keyId, both.open(userId, sealed)], [box.keyId, 'from before'], 'a key was lost');
      assert.equal(new Set(both.keyIds()).size, new Set([...box.keyIds()]).size, 'keys of a file are not read again');
      return `file of ${Math.min(both.keyIds().length, 4)}`;
    },
    close: async () => rmSync(folder, { recursive: true, force: true }),
  };
};
