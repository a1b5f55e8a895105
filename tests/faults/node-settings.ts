// The settings of a whole node that a fault test runs in a process of its own.
import { resolveSettings } from '../../server/src/config/config.ts';

/** A store's node on free ports, which answers however busy the machine is. */
export const nodeSettings = (folder: string, keyFile: string) => {
  const flags = {
    listen: '127.0.0.1:0',
    opsListen: '127.0.0.1:0',
    requestsPerSecond: '10000',
    verifierThreads: '1',
    explorer: 'off',
    eventLoopLagMaxMs: '60000',
  };
  const env = { SEALPOST_STORE: folder, SEALPOST_KEY_FILE: keyFile };
  return resolveSettings({ flags, env, file: undefined }).values;
};
