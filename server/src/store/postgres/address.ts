// Parses the address of a PostgreSQL store. Our own parameters are taken out; the rest goes to the driver unchanged, so that several hosts, TLS and other
// driver options work.
import { hidePassword } from '../../runtime/urls.ts';
import { StoreError } from '../store.ts';

export type PostgresAddress = {
  /** What the driver takes. */
  readonly url: string;
  /** For people to read: without the password. */
  readonly shown: string;
  /** Where all tables lie. */
  readonly schema: string;
  /** Connections that a node opens at most, all its processes together; undefined takes 10 for each process. */
  readonly connections: number | undefined;
  /** A read fails after this, whatever the database does. */
  readonly readMs: number;
  /** A write fails after this, whatever the database does. */
  readonly writeMs: number;
};

/** Times of an address that names none: of a node, whose clients wait for answers, and of a command, for which a slow answer is better than none (D144). */
const nodeTimes = { readMs: 1_000, writeMs: 5_000 };
export const commandTimes = { readMs: 60_000, writeMs: 60_000 };

const schemaDefault = 'sealpost';

const sslModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'];

/** Can the driver read this? What it throws otherwise holds the password. */
const isReadable = (place: string): boolean => {
  const [authority = ''] = place.slice(place.indexOf('://') + 3).split('/');
  const hosts = authority.slice(authority.indexOf('@') + 1);
  const [first = ''] = hosts.split(',');
  try {
    const { username, password } = new URL(place.replace(hosts, first));
    decodeURIComponent(username + password + hosts);
    return true;
  } catch {
    return false;
  }
};

/** Takes an address apart; one that cannot be used is a `store_url_invalid` that says why. */
export function parseAddress(url: string, times = nodeTimes): PostgresAddress {
  const [place = '', query = ''] = url.split(/\?(.*)/s);
  if (!isReadable(place))
    throw new StoreError(
      'store_url_invalid',
      'The address of the database is invalid. It is postgres://USER:PASSWORD@HOST:PORT/DATABASE; a user and a password have % written as %25, / as %2F, ? as %3F, # as %23, @ as %40.',
    );
  const parameters = new URLSearchParams(query);
  const shown = hidePassword(place);
  const refuse = (what: string) => new StoreError('store_url_invalid', `${shown}: ${what}`);
  const take = (name: string): string | undefined => {
    const value = parameters.get(name) ?? undefined;
    parameters.delete(name);
    return value;
  };
  const takeNumber = <T>(name: string, standard: T, min: number, max: number): number | T => {
    const raw = take(name);
    if (raw === undefined) return standard;
    const value = Number(raw);
    if (/^\d{1,9}$/.test(raw) && value >= min && value <= max) return value;
    throw refuse(`the parameter ${name} is ${JSON.stringify(raw)}, expected a whole number from ${min} to ${max}.`);
  };
  const schema = take('schema') ?? schemaDefault;
  if (!/^[a-z_][a-z0-9_]{0,39}$/.test(schema))
    throw refuse('the parameter schema must be up to 40 lowercase letters, digits and underscores.');
  const connections = takeNumber('connections', undefined, 1, 1_000);
  const readMs = takeNumber('read_ms', times.readMs, 50, 600_000);
  const writeMs = takeNumber('write_ms', times.writeMs, 50, 600_000);
  // The driver takes any other word for one that demands TLS, and the error of a server without it says nothing of that.
  const sslMode = parameters.get('sslmode');
  if (sslMode !== null && !sslModes.includes(sslMode))
    throw refuse(`the parameter sslmode is ${JSON.stringify(sslMode)}, expected ${sslModes.join(', ')}.`);
  // Asked for a writable server, the driver takes a hot standby as well.
  if (parameters.get('target_session_attrs') === 'read-write') parameters.set('target_session_attrs', 'primary');
  const rest = parameters.toString();
  return { url: rest === '' ? place : `${place}?${rest}`, shown, schema, connections, readMs, writeMs };
}
