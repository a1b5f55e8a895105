// One-time codes that sign in a browser without putting the secret into a link (D154). A program that has the secret makes them; the server accepts
// each code once.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** How long a code is good for. */
export const signInCodeMs = 600_000;

const macOf = (secret: string, text: string): string =>
  createHmac('sha256', secret).update(`sealpost sign-in ${text}`).digest('base64url');

/** A new code for a secret: when it was made, 96 random bits, and the secret's word for both. */
export function createSignInCode(secret: string, nowMs: number): string {
  const text = `${nowMs.toString(36)}.${randomBytes(12).toString('base64url')}`;
  return `${text}.${macOf(secret, text)}`;
}

export type SignInCodes = {
  /** Takes a code: true once for each that was made for the secret since this was opened and not too long ago. */
  readonly take: (code: string) => boolean;
};

/** Opens the taking of codes. Those of before are not taken, since it is not known which of them were. */
export function createSignInCodes(secret: string, nowMs: () => number): SignInCodes {
  const startedMs = nowMs();
  const taken = new Map<string, number>();
  return {
    take: (code) => {
      const [, text = '', madeAt = '', mac = ''] = /^(([0-9a-z]{1,11})\.[\w-]{16})\.([\w-]{43})$/.exec(code) ?? [];
      if (mac === '' || !timingSafeEqual(Buffer.from(mac), Buffer.from(macOf(secret, text)))) return false;
      const [madeMs, atMs] = [Number.parseInt(madeAt, 36), nowMs()];
      for (const [one, untilMs] of taken) if (untilMs < atMs) taken.delete(one);
      if (madeMs < startedMs || madeMs > atMs || atMs - madeMs > signInCodeMs || taken.has(text)) return false;
      taken.set(text, madeMs + signInCodeMs);
      return true;
    },
  };
}
