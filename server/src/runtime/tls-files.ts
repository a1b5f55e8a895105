// Reads the certificate and its private key. A key that others may read is rejected, like key and token files.
import { X509Certificate } from 'node:crypto';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { isTlsKeyOpenToOthers } from './files.ts';

export type TlsFiles = { readonly certFile: string; readonly keyFile: string };

/** What the files hold, PEM. */
export type TlsPair = { readonly cert: Buffer; readonly key: Buffer };

/** Others may read the private key; the text says what to do. */
export class OpenTlsKeyError extends Error {
  override readonly name = 'OpenTlsKeyError';
}

/** The files that a pair of settings names; undefined without TLS. */
export const tlsFilesOf = ({ tlsCert, tlsKey }: TlsSettings): TlsFiles | undefined =>
  tlsCert === undefined || tlsKey === undefined ? undefined : { certFile: tlsCert, keyFile: tlsKey };

export type TlsSettings = { readonly tlsCert: string | undefined; readonly tlsKey: string | undefined };

/** What is observed when renewed files cannot be used. */
export const tlsReloadFailed = (error: unknown) =>
  ({
    kind: 'warning',
    code: 'tls_reload_failed',
    message: 'The new certificate cannot be used. The server keeps the old one.',
    error,
  }) as const;

/** Reads both. Throws what the system throws, or `OpenTlsKeyError`. */
export const readTlsFiles = ({ certFile, keyFile }: TlsFiles): TlsPair => ({
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

/** Whom a certificate is for, and until when, ISO 8601. */
export function describeCertificate(pem: string | Buffer): { readonly names: string; readonly validTo: string } {
  const { subject, subjectAltName, validTo } = new X509Certificate(pem);
  const names = [subject?.replaceAll('\n', ', '), subjectAltName].filter((name) => name !== undefined).join(', ');
  return { names, validTo: new Date(validTo).toISOString() };
}

/** When a certificate expires. */
export const certificateEndMsOf = ({ cert }: { readonly cert: string | Buffer }): number =>
  Date.parse(new X509Certificate(cert).validTo);
