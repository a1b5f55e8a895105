import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { hidePassword } from '../../runtime/urls.ts';
import { commandTimes, parseAddress } from './address.ts';

test('postgres address: ours is taken out, the driver’s stays, and the password is not shown', () => {
  const url =
    'postgres://me:p:a%40ss@a:5432,b:5433/db?schema=two&sslmode=verify-full&connections=4&read_ms=200&write_ms=300';
  expect(parseAddress(url)).toEqual({
    url: 'postgres://me:p:a%40ss@a:5432,b:5433/db?sslmode=verify-full',
    shown: 'postgres://me:***@a:5432,b:5433/db',
    schema: 'two',
    connections: 4,
    readMs: 200,
    writeMs: 300,
  });
  expect(parseAddress('postgresql://db.example/x')).toEqual({
    url: 'postgresql://db.example/x',
    shown: 'postgresql://db.example/x',
    schema: 'sealpost',
    connections: undefined,
    readMs: 1_000,
    writeMs: 5_000,
  });
});

test('postgres address: a command waits a minute, unless the address says how long', () => {
  expect(parseAddress('postgres://h/db', commandTimes)).toMatchObject({ readMs: 60_000, writeMs: 60_000 });
  expect(parseAddress('postgres://h/db?read_ms=70&write_ms=80', commandTimes)).toMatchObject({
    readMs: 70,
    writeMs: 80,
  });
});

test('postgres address: a writable server means the primary, which the driver tells from a standby', () => {
  expect(parseAddress('postgres://a,b/db?target_session_attrs=read-write').url).toBe(
    'postgres://a,b/db?target_session_attrs=primary',
  );
});

test('postgres address: an invalid parameter is rejected by name, without the password', () => {
  const refusal = (query: string) => {
    try {
      parseAddress(`postgres://me:secret@h/db?${query}`);
    } catch (error) {
      return (error as Error).message; // what it throws is a StoreError
    }
    return undefined;
  };
  expect(refusal('connections=0')).toBe(
    'postgres://me:***@h/db: the parameter connections is "0", expected a whole number from 1 to 1000.',
  );
  expect(refusal('read_ms=fast')).toContain('the parameter read_ms is "fast"');
  expect(refusal('sslmode=verify_full')).toBe(
    'postgres://me:***@h/db: the parameter sslmode is "verify_full", expected disable, allow, prefer, require, verify-ca, verify-full.',
  );
  expect(refusal('sslmode=require')).toBeUndefined();
  expect(refusal('schema=a;drop')).toContain('the parameter schema must be up to 40 lowercase letters');
});

test.each([
  'postgres://me:sec/ret@h/db',
  'postgres://me:sec?ret@h/db',
  'postgres://me:se%cret@h/db',
  'postgres://me:secret@h:99999/db',
])('postgres address: %s is invalid, and the error does not show the password', (url) => {
  const refused = (() => {
    try {
      return parseAddress(url);
    } catch (error) {
      return error;
    }
  })();
  expect(refused).toMatchObject({ name: 'StoreError', code: 'store_url_invalid' });
  expect(inspect(refused)).toMatch(/^StoreError: The address of the database is invalid\./);
  expect(inspect(refused).split('\n')[0]).not.toMatch(/sec|ret/);
  expect(hidePassword('postgres://me:sec/ret@h/db')).toBe('postgres://me:***@h/db');
  expect(hidePassword('postgres://me@h/db?sslpassword=a&x=1&password=b')).toBe(
    'postgres://me@h/db?sslpassword=***&x=1&password=***',
  );
});
