// Announces which keys a running node has, so that `secret rewrap` does not use a key that some node lacks (D150), and its retention (D240).
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { within } from '../runtime/deadline.ts';
import type { KeyHolders, RetentionLimits } from '../store/nodes.ts';
import type { SecretBox } from './secrets.ts';

const everyMs = 1_000;
const withdrawMaxMs = 1_000;

/** Announces now and every second until stopped. Calls `onTrouble` once per run of failures. */
export const announceKeys = (
  holders: KeyHolders,
  box: SecretBox,
  onTrouble: (error: unknown) => void,
  retention?: RetentionLimits,
): (() => Promise<void>) => {
  // Containers may have the same host name, and each a process 1: the ID keeps their announcements apart.
  const node = `${hostname()}, process ${process.pid}, ID ${randomBytes(6).toString('hex')}`;
  let isTroubled = false;
  let underWay: Promise<void> | undefined;
  const announce = async (): Promise<void> => {
    try {
      await holders.announce({ node, keyIds: box.keyIds(), retention });
      isTroubled = false;
    } catch (error) {
      if (!isTroubled) onTrouble(error);
      isTroubled = true;
    }
  };
  const say = (): void => {
    underWay ??= announce().finally(() => {
      underWay = undefined;
    });
  };
  say();
  const timer = setInterval(say, everyMs).unref();
  return async () => {
    clearInterval(timer);
    // An announcement that cannot be withdrawn, because the disk or database does not answer, expires within seconds.
    const withdraw = async (): Promise<void> => {
      await underWay;
      await holders.withdraw(node);
    };
    await within(withdrawMaxMs, withdraw()).catch(() => {});
  };
};
