// Secrets at rest: sealed by AES-256-GCM with a key-encryption key that is never in the store. The server needs the secret to compute an HMAC, so it
// cannot be stored as a hash (D60).
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describeFileFailure } from '../runtime/files.ts';

/** Seals and opens secrets of users. */
export type SecretBox = {
  /** A text that only the same key and user id open; another one every time. */
  readonly seal: (userId: string, secret: string) => string;
  /** Throws `SecretBoxError` when key, user id or text is not the one that sealed. */
  readonly open: (userId: string, sealed: string) => string;
  /** Names the key without giving it away. */
  readonly keyId: string;
  /** The ids of every key that opens, as of now. */
  readonly keyIds: () => readonly string[];
};

/** A key that is missing or wrong. Never holds key or secret. */
export class SecretBoxError extends Error {
  override readonly name = 'SecretBoxError';
}

const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;

/** Makes a box from a 32-byte key. */
export function createSecretBox(key: Buffer): SecretBox {
  if (key.length !== keyBytes)
    throw new SecretBoxError(`The key-encryption key has ${key.length} bytes, expected ${keyBytes}.`);
  const keyId = createHash('sha256').update('sealpost key id').update(key).digest('hex').slice(0, 16);
  return {
    keyId,
    keyIds: () => [keyId],
    seal: (userId, secret) => {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(userId.toLowerCase()));
      const sealed = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
      return `${keyId}.${Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url')}`;
    },
    open: (userId, text) => {
      const [sealedBy, payload = ''] = text.split('.');
      if (sealedBy !== keyId)
        throw new SecretBoxError(
          `A secret was sealed with key ${sealedBy}, but this key is ${keyId}. Use the key it was sealed with.`,
        );
      const bytes = Buffer.from(payload, 'base64url');
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes), {
          authTagLength: tagBytes,
        }).setAAD(Buffer.from(userId.toLowerCase()));
        decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
        return Buffer.concat([decipher.update(bytes.subarray(nonceBytes + tagBytes)), decipher.final()]).toString(
          'utf8',
        );
      } catch {
        throw new SecretBoxError('A stored secret cannot be opened: it was altered, or belongs to another user.');
      }
    },
  };
}

/** Reads a key written as 64 hex digits or base64 of 32 bytes, from its text. */
export function parseKey(text: string): Buffer {
  const trimmed = text.trim();
  const key = /^[0-9a-f]{64}$/i.test(trimmed) ? Buffer.from(trimmed, 'hex') : Buffer.from(trimmed, 'base64');
  if (key.length !== keyBytes)
    throw new SecretBoxError('The key-encryption key must be 32 bytes, as 64 hex digits or base64.');
  return key;
}

/** Reads the keys of a file, one to a line, at least one. */
export function readKeyFile(path: string): readonly Buffer[] {
  try {
    return readFileSync(path, 'utf8').trim().split('\n').map(parseKey);
  } catch (cause) {
    if (cause instanceof SecretBoxError) throw new SecretBoxError(`${path}: ${cause.message}`, { cause });
    if (Object(cause).code !== 'ENOENT') throw new SecretBoxError(`${describeFileFailure(path, cause)}.`, { cause });
    throw new SecretBoxError(`No key-encryption key in ${path}. Create one with: sealpost init.`, { cause });
  }
}

/** A new secret: 32 random bytes, as text. */
export const createSecret = (): string => randomBytes(32).toString('base64url');
