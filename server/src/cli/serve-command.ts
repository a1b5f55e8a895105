// The command `sealpost serve`: a node on the configured store, until it is told to stop.
import type { Command } from 'commander';
import { type SettingName, settingNames } from '../config.ts';
import { openNode } from '../node.ts';
import { addExamples, addSettings, type RawOptions, readSettings } from './command-options.ts';
import { usageError } from './failure.ts';
import { readIngestToken } from './ingest-token.ts';
import { printJson, type Session } from './session.ts';
import { readVersion } from './version.ts';

const loopback = /^(127\.|::1$|localhost$)/;

export const addServeCommand = (program: Command, session: Session): void => {
  const command = program
    .command('serve')
    .description('Serve the API from the store, and take reports in on the private listener.')
    .option('--json', 'print one line of JSON when ready')
    .action((options: RawOptions) => serve(session, options));
  addSettings(
    command,
    settingNames.filter((name): name is SettingName => name !== 'key'),
  );
  addExamples(command, [
    ['On this machine only', 'sealpost init && sealpost serve'],
    ['For others, with TLS', 'sealpost serve --listen 0.0.0.0:443 --tls-cert chain.pem --tls-key key.pem'],
  ]);
};

const serve = async (session: Session, options: RawOptions): Promise<void> => {
  const resolved = await readSettings(session, options);
  const settings = resolved.values;
  if ((settings.tlsCert === undefined) !== (settings.tlsKey === undefined))
    throw usageError('TLS needs both --tls-cert and --tls-key.');
  if (settings.tlsCert === undefined && !loopback.test(settings.listen.host)) {
    session.stderr.write(
      'warning: listening beyond this machine without TLS. Put a proxy that ends TLS in front, or use --tls-cert and --tls-key.\n',
    );
  }
  const signal = session.interruption();
  const node = await openNode({ settings, version: readVersion(), ingestToken: await readIngestToken(resolved) });
  if (options.json === true) await printJson(session, { url: node.url, opsUrl: node.opsUrl });
  else session.stderr.write(`Sealpost answers at ${node.url}, privately at ${node.opsUrl}.\n`);
  const reload = (): void => node.reloadTls();
  process.on('SIGHUP', reload);
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  process.off('SIGHUP', reload);
  await node.stop(String(signal.reason));
};
