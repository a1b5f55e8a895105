// How a running node says which keys it has, so that `secret rewrap` rewraps nothing that a node could not open (D150).
import { hostname } from 'node:os';
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
    // Whatever does not end, on a disk or at a database that does not answer, is forgotten within seconds.
    await within(
      withdrawMaxMs,
      (async () => {
        await underWay;
        await holders.withdraw(node);
      })(),
    );
  };
};

/** Waits for an act to end, well or badly, but not longer than this. */
const within = async (ms: number, act: Promise<void>): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([act.catch(() => {}), late]);
  clearTimeout(timer);
};
