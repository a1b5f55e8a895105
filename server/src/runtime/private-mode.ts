// Checks that only its owner can read a file with a secret.

/**
 * Does the mode of a file let others in? Modes mean nothing on Windows. What systemd hands over in `CREDENTIALS_DIRECTORY` is its service's
 * alone, by an access list that shows as mode 0440.
 */
export const isOpenToOthers = (path: string, mode: number, env: NodeJS.ProcessEnv = process.env): boolean => {
  const { CREDENTIALS_DIRECTORY: handedOver } = env;
  if (process.platform === 'win32' || (handedOver && path.startsWith(`${handedOver}/`))) return false;
  return (mode & 0o077) !== 0;
};

/**
 * The same of the private key of a certificate, where root may let a group read it: that is how services of a machine share one, by Debian's
 * group ssl-cert say (D167).
 */
export const isTlsKeyOpenToOthers = (
  path: string,
  { mode, uid }: { readonly mode: number; readonly uid: number },
  env: NodeJS.ProcessEnv = process.env,
): boolean => isOpenToOthers(path, uid === 0 ? mode & ~0o040 : mode, env);
