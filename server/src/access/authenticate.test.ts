import { randomUUID } from 'node:crypto';
import { ApiError, authHeaders, signatureOf, signRequest, statusOf } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { secondStream, testStream } from '../../../tests/support/samples.ts';
import type { AdminSnapshot, AdminView } from '../store/admin-snapshot.ts';
import type { Account } from '../store/store.ts';
import { addSecret, revokeSecret, switchAccount } from './account-changes.ts';
import { type AuthValues, createAuthenticator } from './authenticate.ts';
import { createCallers, type SecretNotOpened } from './callers.ts';
import { createMissingKeys } from './key-announcement.ts';
import { createSecretBox } from './secrets.ts';

const nowMs = 1_763_200_000_000;
const box = createSecretBox(Buffer.alloc(32, 7));
const target = '/api/v1/reports/latest?feedID=0x01&x=%2C';
const feedId = secondStream(1);

const newAccount = (...secrets: readonly string[]): Account => {
  const userId = randomUUID();
  const bare: Account = {
    userId,
    name: 'test',
    createdAt: '2026-01-01T00:00:00.000000Z',
    disabledAt: null,
    secrets: [],
    entitlements: ['public'],
    rateLimits: { feeds: 3 },
  };
  return secrets.reduce((account, secret) => addSecret(account, secret, box.seal(userId, secret), nowMs), bare);
};

/** Accounts in memory, which a test may replace as another process would. */
const createAccess = (...first: readonly Account[]) => {
  const snapshotOf = (accounts: readonly Account[]): AdminSnapshot => ({
    streams: new Map([[feedId, testStream(feedId)]]),
    signerSets: new Map(),
    accounts: new Map(accounts.map((account) => [account.userId, account])),
  });
  let snapshot = snapshotOf(first);
  const wakes: (() => void)[] = [];
  const view: AdminView = {
    current: () => snapshot,
    onReload: (wake) => {
      wakes.push(wake);
      return () => {};
    },
    close: () => {},
  };
  const notOpened: string[] = [];
  const clock = { ms: 0 };
  const tell = ({ userId, secretId, error }: SecretNotOpened) => void notOpened.push(`${userId} ${secretId} ${error}`);
  const callers = createCallers(view, box, tell, () => clock.ms);
  const asked: string[] = [];
  const lookUp = (userId: string) => {
    asked.push(userId);
    return callers.callerOf(userId);
  };
  const signedBy: string[] = [];
  const { authenticate, secretIdOf } = createAuthenticator(lookUp, 5_000, (userId, secretId, atMs) => {
    signedBy.push(`${userId} ${secretId} ${atMs}`);
  });
  const replace = (...accounts: readonly Account[]) => {
    snapshot = snapshotOf(accounts);
    for (const wake of wakes) wake();
  };
  return { authenticate, secretIdOf, callers, asked, signedBy, replace, notOpened, clock };
};

const sign = (userId: string, secret: string, changes: Partial<Parameters<typeof signRequest>[0]> = {}): AuthValues => {
  const headers = signRequest({ method: 'GET', target, userId, timestampMs: nowMs, ...changes }, secret);
  return {
    userId: headers[authHeaders.userId],
    timestamp: headers[authHeaders.timestamp],
    signature: headers[authHeaders.signature],
  };
};

const failure = (act: () => unknown) => {
  try {
    act();
  } catch (error) {
    if (error instanceof ApiError) return { ...error, message: error.message, status: statusOf(error) };
  }
  return { code: 'none', message: '', status: 200 };
};

test('authenticate: a signed request has its caller; the case of the user ID does not matter', () => {
  const account = newAccount('one');
  const { authenticate } = createAccess(account);
  const caller = authenticate('GET', target, sign(account.userId, 'one'), nowMs);
  expect([caller.userId, caller.rateLimits]).toEqual([account.userId, { feeds: 3 }]);
  expect(caller.bucketKeys).toMatchObject({ feeds: `feeds ${account.userId}`, reportAt: `reportAt ${account.userId}` });
  expect(authenticate('GET', target, sign(account.userId.toUpperCase(), 'one'), nowMs)).toBe(caller);
  const { signature, ...others } = sign(account.userId, 'one');
  expect(authenticate('GET', target, { ...others, signature: signature?.toUpperCase() }, nowMs)).toBe(caller);
});

test('authenticate: nobody needs to be told of signed requests', () => {
  const account = newAccount('one');
  const { authenticate } = createAuthenticator(createAccess(account).callers.callerOf, 5_000);
  expect(authenticate('GET', target, sign(account.userId, 'one'), nowMs).userId).toBe(account.userId);
});

test('authenticate: headers come first, each in turn, then the clock, and only then the user', () => {
  const account = newAccount('one');
  const { authenticate, asked } = createAccess(account);
  const good = sign(account.userId, 'one');
  const steps: readonly (readonly [Partial<AuthValues>, string, string])[] = [
    [{ userId: undefined, timestamp: 'bad', signature: 'bad' }, 'missing_header', 'Authorization is missing'],
    [{ userId: 'Bearer x', timestamp: 'bad', signature: 'bad' }, 'malformed_header', 'Authorization has'],
    [{ timestamp: undefined, signature: 'bad' }, 'missing_header', 'X-Authorization-Timestamp is missing'],
    [{ timestamp: '1763200000', signature: 'bad' }, 'malformed_header', 'X-Authorization-Timestamp has'],
    [{ timestamp: '1000000000000', signature: undefined }, 'missing_header', 'X-Authorization-Signature-SHA256 is'],
    [{ timestamp: '1000000000000', signature: 'bad' }, 'malformed_header', 'X-Authorization-Signature-SHA256 has'],
    [{ timestamp: '1000000000000' }, 'clock_skew', 'X-Authorization-Timestamp is 763200000000 ms behind'],
  ];
  for (const [changes, code, text] of steps) {
    const found = failure(() => authenticate('GET', target, { ...good, ...changes }, nowMs));
    expect([found.code, found.message.slice(0, text.length), found.status]).toEqual([code, text, 400]);
    expect(found).toMatchObject({ details: { header: text.split(' ')[0] } });
  }
  expect(asked).toEqual([]);
  expect(failure(() => authenticate('GET', target, { ...good, signature: '0'.repeat(64) }, nowMs)).code).toBe(
    'unauthorized',
  );
  expect(asked).toEqual([account.userId]);
});

test('authenticate: the clock may differ by exactly the tolerance, either way', () => {
  const account = newAccount('one');
  const { authenticate } = createAccess(account);
  const codeAt = (timestampMs: number) =>
    failure(() => authenticate('GET', target, sign(account.userId, 'one', { timestampMs }), nowMs)).code;
  expect([-5_001, -5_000, 0, 5_000, 5_001].map((skew) => codeAt(nowMs + skew))).toEqual([
    'clock_skew',
    'none',
    'none',
    'none',
    'clock_skew',
  ]);
});

test('authenticate: unknown, disabled, without secret, revoked and wrongly signed give the same error', () => {
  const known = newAccount('one');
  const disabled = switchAccount(newAccount('one'), false, nowMs);
  const revoked = revokeSecret(newAccount('one', 'two'), 'one', nowMs);
  const bare = newAccount();
  const { authenticate } = createAccess(known, disabled, revoked, bare);
  const attempts = [
    sign(known.userId, 'two'),
    sign(randomUUID(), 'one'),
    sign(disabled.userId, 'one'),
    sign(revoked.userId, 'one'),
    sign(bare.userId, 'one'),
    sign(bare.userId, ''),
    sign(known.userId, 'one', { method: 'HEAD' }),
    sign(known.userId, 'one', { target: `${target}&y=1` }),
    sign(known.userId, 'one', { timestampMs: nowMs - 1 }).signature,
  ].map((values) => (typeof values === 'object' ? values : { ...sign(known.userId, 'one'), signature: values }));
  const errors = attempts.map((values) => failure(() => authenticate('GET', target, values, nowMs)));
  expect(errors[0]).toMatchObject({ code: 'unauthorized', status: 401 });
  for (const error of errors) expect(error).toEqual(errors[0]);
});

test('authenticate: two active secrets both work, a revoked one does not, and a change applies at once', () => {
  const account = newAccount('one', 'two');
  const { authenticate, replace, signedBy } = createAccess(account);
  const codes = () =>
    ['one', 'two', 'three'].map(
      (secret) => failure(() => authenticate('GET', target, sign(account.userId, secret), nowMs)).code,
    );
  expect(codes()).toEqual(['none', 'none', 'unauthorized']);
  expect(signedBy.splice(0)).toEqual(['one', 'two'].map((secretId) => `${account.userId} ${secretId} ${nowMs}`));
  const rotated = revokeSecret(account, 'one', nowMs);
  replace(rotated);
  expect(codes()).toEqual(['unauthorized', 'none', 'unauthorized']);
  replace(addSecret(rotated, 'three', box.seal(account.userId, 'three'), nowMs));
  expect(codes()).toEqual(['unauthorized', 'none', 'none']);
  replace(switchAccount(account, false, nowMs));
  signedBy.length = 0;
  expect(codes()).toEqual(['unauthorized', 'unauthorized', 'unauthorized']);
  expect(signedBy).toEqual([]);
});

test('authenticate: a connection knows by which of the secrets its request was signed', () => {
  const account = newAccount('one', 'two');
  const { secretIdOf } = createAccess(account);
  for (const secret of ['one', 'two']) {
    const values = sign(account.userId, secret);
    expect(secretIdOf('GET', target, values)).toBe(secret);
    expect(secretIdOf('GET', target, { ...values, signature: values.signature?.toUpperCase() })).toBe(secret);
    expect(failure(() => secretIdOf('HEAD', target, values)).code).toBe('unauthorized');
    // A shorter one must not be compared together with what the signature before it left in the buffer.
    for (const signature of [undefined, '', values.signature?.slice(0, 63)])
      expect(() => secretIdOf('GET', target, { ...values, signature })).toThrow('X-Authorization-Signature-SHA256');
  }
});

test('authenticate: a doubled leading slash may be signed with one or two, and nothing else is normalised', () => {
  const account = newAccount('one');
  const { authenticate } = createAccess(account);
  const codeOf = (received: string, signed: string) =>
    failure(() => authenticate('GET', received, sign(account.userId, 'one', { target: signed }), nowMs)).code;
  expect(codeOf('//api/v1/feeds', '//api/v1/feeds')).toBe('none');
  expect(codeOf('//api/v1/feeds', '/api/v1/feeds')).toBe('none');
  const refused = [
    ['/api/v1/feeds', '//api/v1/feeds'],
    ['///api/v1/feeds', '/api/v1/feeds'],
    ['/api//v1/feeds', '/api/v1/feeds'],
    ['/api/v1/feeds?x=%2C', '/api/v1/feeds?x=,'],
    ['/api/v1/feeds?x=%2c', '/api/v1/feeds?x=%2C'],
    ['/api/v1/feeds?a=1&b=2', '/api/v1/feeds?b=2&a=1'],
    ['/api/v1/feeds/', '/api/v1/feeds'],
  ] as const;
  for (const [received, signed] of refused) expect(codeOf(received, signed), received).toBe('unauthorized');
});

test('authenticate: bytes beyond ASCII are signed as sent on the request line', () => {
  const account = newAccount('one');
  const { authenticate } = createAccess(account);
  const asSent = '/api/v1/discovery?base_asset=é';
  const asReceived = Buffer.from(asSent, 'utf8').toString('latin1');
  const signature = signatureOf({ method: 'GET', target: asSent, userId: account.userId, timestampMs: nowMs }, 'one');
  const values = { userId: account.userId, timestamp: String(nowMs), signature };
  expect(authenticate('GET', asReceived, values, nowMs).userId).toBe(account.userId);
});

test('callers: what an account may read follows its record, and a stranger may read nothing', () => {
  const account = newAccount('one');
  const { callers, replace } = createAccess(account);
  expect([...callers.readableOf(account.userId)]).toEqual([feedId]);
  expect(callers.readableOf(account.userId)).toBe(callers.readableOf(account.userId));
  expect(callers.readableOf(randomUUID()).size).toBe(0);
  replace({ ...account, entitlements: [] });
  expect(callers.readableOf(account.userId).size).toBe(0);
});

test('authenticate: a user whose secret cannot be opened is answered like an unknown one, with an alarm at most once a second', () => {
  const account = newAccount('good');
  const elsewhere = createSecretBox(Buffer.alloc(32, 8));
  const sealedBy = (sealed: string): Account => ({
    ...account,
    secrets: account.secrets.map((secret) => ({ ...secret, sealed })),
  });
  const altered = `${box.keyId}.${Buffer.alloc(60).toString('base64url')}`;
  for (const sealed of [elsewhere.seal(account.userId, 'good'), altered, `${box.keyId}.`, '', 'x.y.z']) {
    const access = createAccess(sealedBy(sealed));
    const ask = () => failure(() => access.authenticate('GET', target, sign(account.userId, 'good'), nowMs));
    const unknown = failure(() => access.authenticate('GET', target, sign(randomUUID(), 'good'), nowMs));
    expect([ask(), ask(), ask()]).toEqual([unknown, unknown, unknown]);
    expect(access.notOpened).toEqual([expect.stringContaining(`${account.userId} good SecretBoxError: A s`)]);
    access.clock.ms += 1_000;
    expect(ask()).toEqual(unknown);
    expect(access.notOpened.length).toBe(2);
    access.replace(account);
    expect(access.authenticate('GET', target, sign(account.userId, 'good'), nowMs).userId).toBe(account.userId);
  }
});

test('authenticate: of two secrets the one that opens is good, also while the other one does not open', () => {
  const account = newAccount('first', 'second');
  const [first, second] = account.secrets;
  if (first === undefined || second === undefined) throw new Error('It has two.');
  const { authenticate, notOpened, signedBy } = createAccess({
    ...account,
    secrets: [{ ...first, sealed: 'x' }, second],
  });
  expect(authenticate('GET', target, sign(account.userId, 'second'), nowMs).secretIds).toEqual(['second']);
  expect(signedBy).toEqual([`${account.userId} second ${nowMs}`]);
  expect(failure(() => authenticate('GET', target, sign(account.userId, 'first'), nowMs))).toMatchObject({
    status: 401,
  });
  expect(notOpened.length).toBe(1);
});

test('missing keys: each key that active secrets need and this node lacks is listed with their number', () => {
  const elsewhere = createSecretBox(Buffer.alloc(32, 8));
  const [mine, other, gone] = [newAccount('a'), newAccount('b'), newAccount('c')];
  const under = (account: Account, revokedAt: string | null): Account => ({
    ...account,
    secrets: account.secrets.map((secret) => ({
      ...secret,
      revokedAt,
      sealed: elsewhere.seal(account.userId, secret.id),
    })),
  });
  const snapshotOf = (...accounts: readonly Account[]): AdminSnapshot => ({
    streams: new Map(),
    signerSets: new Map(),
    accounts: new Map(accounts.map((account) => [account.userId, account])),
  });
  let snapshot = snapshotOf(mine);
  const missing = createMissingKeys({ current: () => snapshot }, box);
  expect(missing()).toEqual([]);
  snapshot = snapshotOf(mine, under(other, null), under(gone, '2026-01-01T00:00:00.000000Z'));
  expect(missing()).toEqual([`secrets: 1 active, sealed by key ${elsewhere.keyId}, which this node does not have`]);
});
