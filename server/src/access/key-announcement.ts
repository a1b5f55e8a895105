// How a running node says which keys it has, so that `secret rewrap` rewraps nothing that a node could not open (D150).
import { hostname } from 'node:os';
import { within } from '../runtime/deadline.ts';
import type { KeyHolders } from '../store/nodes.ts';
import type { SecretBox } from './secrets.ts';

const everyMs = 1_000;
const withdrawMaxMs = 1_000;

/** Says it now and every second until it is stopped. `onTrouble` hears of a failure once, until one works again. */
export const announceKeys = (
  holders: KeyHolders,
  box: SecretBox,
  onTrouble: (error: unknown) => void,
): (() => Promise<void>) => {
  const node = `${hostname()}, process ${process.pid}`;
  let isTroubled = false;
  let underWay: Promise<void> | undefined;
  const announce = async (): Promise<void> => {
    try {
      await holders.announce({ node, keyIds: box.keyIds() });
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
