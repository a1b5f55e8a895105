// Settings of the private listener, and of ingest: rows of the table in config.ts.
import { formatList, formatListen, parseHostNames, parseListen, parseText } from './values.ts';

const file = { parse: parseText, expected: 'the path of a file' };

export const privateSettings = {
  opsListen: {
    env: 'SEALPOST_OPS_LISTEN',
    flag: '--ops-listen <address>',
    defaultText: '127.0.0.1:7402',
    parse: parseListen,
    format: formatListen,
    expected: 'HOST:PORT, such as 127.0.0.1:7402 or [::1]:7402',
    help: 'address of the private listener: ingest, probes and metrics; never a public address',
  },
  opsHosts: {
    env: 'SEALPOST_OPS_HOSTS',
    flag: '--ops-hosts <names>',
    defaultText: undefined,
    parse: parseHostNames,
    format: formatList,
    expected: 'host names without port, separated by commas, such as node1.example.com',
    help: 'public host names that the private listener is reached by',
  },
  opsTlsCert: {
    env: 'SEALPOST_OPS_TLS_CERT',
    flag: '--ops-tls-cert <file>',
    defaultText: undefined,
    ...file,
    help: 'certificate chain of the private listener, PEM; reloaded on SIGHUP',
  },
  opsTlsKey: {
    env: 'SEALPOST_OPS_TLS_KEY',
    flag: '--ops-tls-key <file>',
    defaultText: undefined,
    ...file,
    help: 'private key of this certificate, PEM; reloaded on SIGHUP',
  },
  ingestListen: {
    env: 'SEALPOST_INGEST_LISTEN',
    flag: '--ingest-listen <address>',
    defaultText: undefined,
    parse: parseListen,
    format: formatListen,
    expected: 'HOST:PORT, such as 10.0.0.5:7403',
    help: 'address of /ingest, instead of the private listener’s; with its TLS',
  },
  ingestToken: {
    env: 'SEALPOST_INGEST_TOKEN',
    flag: undefined,
    defaultText: undefined,
    parse: (raw: string) => (/^[\x21-\x7e]{16,512}$/.test(raw) ? raw : undefined),
    expected: 'a text of 16 to 512 visible ASCII characters without spaces',
    help: 'token that senders present to the private listener',
    secret: true,
  },
  ingestTokenFile: {
    env: 'SEALPOST_INGEST_TOKEN_FILE',
    flag: '--ingest-token-file <file>',
    defaultText: undefined,
    ...file,
    help: 'file that holds only the ingest token',
  },
} as const;
