// Who may use a file with a secret in it: its owner alone.

/**
 * Does the mode of a file let others in? Modes mean nothing on Windows. What systemd hands over in `CREDENTIALS_DIRECTORY` is its service's
 * alone, by an access list that shows as mode 0440.
 */
export const isOpenToOthers = (path: string, mode: number, env: NodeJS.ProcessEnv = process.env): boolean => {
  const { CREDENTIALS_DIRECTORY: handedOver } = env;
  if (process.platform === 'win32' || (handedOver && path.startsWith(`${handedOver}/`))) return false;
  return (mode & 0o077) !== 0;
};
