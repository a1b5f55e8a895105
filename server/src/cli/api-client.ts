// Owns opening the client for a command: the server and the user of its flags, warnings to stderr.
import type { Client } from '@sealpost/client';
import type { RawOptions } from './command-options.ts';
import { readAccess } from './credentials.ts';
import type { Session } from './session.ts';

/** The client of the server and user that the options name. */
export const createApiClient = async (
  session: Session,
  options: RawOptions,
): Promise<{ readonly client: Client; readonly url: URL }> => {
  const { url, openClient } = await readAccess(session, options);
  const warn = (message: string): void => void session.stderr.write(`warning: ${message}\n`);
  return { client: openClient(url.origin, warn), url };
};
