// The credentials of a sandbox, derived from its seed: they are the same at every start, in configurations and recorded requests too.
import { createHash } from 'node:crypto';

export type SandboxCredentials = {
  readonly userId: string;
  readonly secret: string;
  readonly ingestToken: string;
  /** The key-encryption key, in hex. */
  readonly key: string;
};

const digestOf = (seed: string, what: string): Buffer =>
  createHash('sha256').update(`sealpost sandbox ${what} ${seed}`).digest();

/** Not secret to anyone who knows the seed: a sandbox has only simulated reports, and listens on this machine. */
export const deriveCredentials = (seed: string): SandboxCredentials => {
  const bytes = digestOf(seed, 'user');
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40; // a version 4 UUID
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  const userId = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-');
  return {
    userId,
    secret: digestOf(seed, 'secret').toString('base64url'),
    ingestToken: digestOf(seed, 'ingest token').toString('base64url'),
    key: digestOf(seed, 'key').toString('hex'),
  };
};
