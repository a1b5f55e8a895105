// The certificate that a primary and its workers use, read and checked by the primary.
import { createSecureContext } from 'node:tls';
import type { Listener } from '../observe/observe.ts';
import {
  certificateEndMsOf,
  readTlsFiles,
  type TlsFiles,
  type TlsPair,
  type TlsSettings,
  tlsFilesOf,
  tlsReloadFailed,
} from '../runtime/tls-files.ts';

/** The certificate in use. Workers get it from here: each would read the files at another time, and they may change in between, or break. */
export const keepCertificate = (settings: TlsSettings, observe: Listener) => {
  const files = tlsFilesOf(settings);
  let inUse = files && readTlsFiles(files);
  return {
    inUse: () => inUse,
    endMs: () => inUse && certificateEndMsOf(inUse),
    /** Reads the files again; false if there is nothing new to use. */
    renew: (): boolean => {
      try {
        if (files === undefined) observe({ kind: 'reloaded', settings: [] });
        else inUse = readUsable(files);
        return files !== undefined;
      } catch (error) {
        observe(tlsReloadFailed(error));
        return false;
      }
    },
  };
};

/** Throws also if they do not match. */
const readUsable = (files: TlsFiles): TlsPair => {
  const pair = readTlsFiles(files);
  createSecureContext(pair);
  return pair;
};
