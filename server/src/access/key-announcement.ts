// How a running node says which keys it has, so that `secret rewrap` seals nothing that a node could not open (D150).
import { hostname } from 'node:os';
import type { KeyHolders } from '../store/nodes.ts';
import type { SecretBox } from './secrets.ts';

const everyMs = 1_000;

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
    await underWay;
    await holders.withdraw(node).catch(() => {}); // it is forgotten within seconds
  };
};
