// Reads the certificate and its private key. A key that others may read is rejected, like key and token files.
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { isTlsKeyOpenToOthers } from './private-mode.ts';

export type TlsFiles = { readonly certFile: string; readonly keyFile: string };

/** Others may read the private key; the text says what to do. */
export class OpenTlsKeyError extends Error {
  override readonly name = 'OpenTlsKeyError';
}

/** Reads both, PEM. Throws what the system throws, or `OpenTlsKeyError`. */
export const readTlsFiles = ({ certFile, keyFile }: TlsFiles): { readonly cert: Buffer; readonly key: Buffer } => ({
  cert: readFileSync(certFile),
  key: readPrivateKey(keyFile),
});

const readPrivateKey = (path: string): Buffer => {
  const file = openSync(path, 'r');
  try {
    const stats = fstatSync(file);
    if (stats.isFile() && isTlsKeyOpenToOthers(path, stats))
      throw new OpenTlsKeyError(
        `${path} contains a private key but is accessible to other users. Run: chmod 600 ${path}. If a group must read it, give it to root: chown root ${path} && chmod 640 ${path}`,
      );
    return readFileSync(file);
  } finally {
    closeSync(file);
  }
};
