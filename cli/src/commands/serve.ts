// The command `sealpost serve`: runs a node on the configured store until SIGTERM or SIGINT.
import { createSecureContext } from 'node:tls';
import { requireOpeningKey } from '@sealpost/server/access/account-changes';
import { openSecretBox } from '@sealpost/server/access/key';
import { type Settings, settingNames } from '@sealpost/server/config/config';
import { formatListen } from '@sealpost/server/config/values';
import type { Node } from '@sealpost/server/node/node';
import { describeFileFailure } from '@sealpost/server/runtime/files';
import { closeFailedStart, watchStart } from '@sealpost/server/runtime/start-watch';
import { OpenTlsKeyError, readTlsFiles } from '@sealpost/server/runtime/tls-files';
import { StoreError } from '@sealpost/server/store/store';
import type { SettingsCommand } from '../command.ts';
import type { RawOptions } from '../command-options.ts';
import { usageError } from '../failure.ts';
import { printJson, type Session, untilAborted } from '../session.ts';
import { withStore } from '../store-access.ts';
import { readVersion } from '../version.ts';
import { readIngestToken } from './ingest/remote.ts';

const loopback = /^(127\.|::1$|localhost$)/;

export const serveCommand: SettingsCommand = {
  name: 'serve',
  summary: 'Serve the API from the store, and ingest reports on the private listener.',
  options: [
    { flag: '--create', help: 'create the store if there is none, empty' },
    { flag: '--json', help: 'print one line of JSON when ready' },
  ],
  settings: settingNames,
  examples: [
    ['On this machine only', 'sealpost init && sealpost serve'],
    ['Publicly, with TLS', 'sealpost serve --listen 0.0.0.0:443 --tls-cert chain.pem --tls-key key.pem'],
    ['With four worker processes', 'sealpost serve --workers 4'],
  ],
  run: async ({ session, options, settings, resolved }) => {
    const { tlsCert, tlsKey, opsTlsCert, opsTlsKey } = settings;
    requireUsableTls('tls', tlsCert, tlsKey);
    requireUsableTls('ops-tls', opsTlsCert, opsTlsKey);
    requireOwnAddresses(settings);
    if (settings.tlsCert === undefined && !loopback.test(settings.listen.host)) {
      session.stderr.write(
        'warning: listening on a public address without TLS. Use a TLS-terminating proxy, or --tls-cert and --tls-key.\n',
      );
    }
    const starting = watchStart((text) => void session.stderr.write(`${text}\n`));
    const open = async (): Promise<Node> => {
      await starting.part('the accounts of the store', () => requireKey(settings, options.create === true));
      const ingestToken = await readIngestToken(resolved);
      if (settings.ingestListen !== undefined && ingestToken === undefined)
        throw usageError('--ingest-listen needs an ingest token. Set --ingest-token-file or SEALPOST_INGEST_TOKEN.');
      const { openNode } = await import('@sealpost/server/node/node'); // its help does not load a server
      return openNode({ settings, version: readVersion(), ingestToken, starting });
    };
    const signal = session.interruption();
    await withHangups(async (hangups) => {
      const node = await open().finally(starting.end);
      try {
        await announce(session, node, options);
      } catch (error) {
        await closeFailedStart(() => node.stop('the start failed'));
        throw error;
      }
      hangups.handle(() => signal.aborted || node.reloadTls());
      await untilAborted(signal);
      await node.stop(String(signal.reason));
    });
  },
};

/**
 * Takes SIGHUP from before the start until after the end: by itself it would end the process, in the middle of a drain too, and systemd takes that for a
 * clean end. One that comes during the start is handled after it.
 */
const withHangups = async (
  run: (hangups: { readonly handle: (reload: () => void) => void }) => Promise<void>,
): Promise<void> => {
  let isDue = false;
  let onHangup = (): void => {
    isDue = true;
  };
  const listener = (): void => onHangup();
  process.on('SIGHUP', listener);
  try {
    await run({
      handle: (reload) => {
        onHangup = reload;
        if (isDue) reload();
      },
    });
  } finally {
    process.off('SIGHUP', listener);
  }
};

const announce = async (session: Session, node: Node, options: RawOptions): Promise<void> => {
  const { url, opsUrl, ingestUrl } = node;
  const ingest = ingestUrl && `, and takes reports at ${ingestUrl}`;
  if (options.json === true) await printJson(session, { url, opsUrl, ...(ingestUrl && { ingestUrl }) });
  else session.stderr.write(`Sealpost answers at ${url}, privately at ${opsUrl}${ingest ?? ''}.\n`);
};

// As a port that is taken it would look like a failure that passes, and a supervisor would start it again without end.
const requireOwnAddresses = ({ listen, opsListen, ingestListen }: Settings): void => {
  const known = new Map<string, string>();
  for (const [name, value] of Object.entries({ listen, opsListen, ingestListen })) {
    if (value === undefined || value.port === 0) continue;
    const address = formatListen(value);
    const other = known.get(address);
    if (other !== undefined)
      throw usageError(`The settings ${other} and ${name} are both ${address}. Each needs its own address.`);
    known.set(address, name);
  }
};

// With another key than the one that sealed the secrets, a server would start but reject all of its accounts; so would one that made an empty store
// because a volume is not mounted, and senders would drop the reports that it rejects (D253).
const requireKey = async (settings: Settings, create: boolean): Promise<void> => {
  const accounts = await withStore(settings.store, ({ admin }) => admin.list('account')).catch((error: unknown) => {
    if (!(error instanceof StoreError) || error.code !== 'store_not_found') throw error;
    if (create) return [];
    const text = `${error.message} If there should be one, check --store and that its volume is mounted. To serve a new, empty store, add --create.`;
    throw new StoreError(error.code, text, { cause: error });
  });
  requireOpeningKey(accounts, openSecretBox(settings));
};

// Reports unusable files as wrong usage, before anything is opened.
const requireUsableTls = (flag: 'tls' | 'ops-tls', tlsCert: string | undefined, tlsKey: string | undefined): void => {
  if ((tlsCert === undefined) !== (tlsKey === undefined))
    throw usageError(`TLS needs both --${flag}-cert and --${flag}-key.`);
  if (tlsCert === undefined || tlsKey === undefined) return;
  try {
    createSecureContext(readTlsFiles({ certFile: tlsCert, keyFile: tlsKey }));
  } catch (cause) {
    if (cause instanceof OpenTlsKeyError) throw usageError(cause.message, { cause });
    const { code, path, message } = Object(cause);
    if (code !== undefined && path !== undefined) throw usageError(describeFileFailure(path, cause), { cause });
    const what = message ?? String(cause);
    throw usageError(`Cannot use certificate ${tlsCert} with key ${tlsKey} (${what}). Both must be PEM and match.`);
  }
};
