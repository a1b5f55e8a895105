import { SealpostError } from '@sealpost/client';
import { expect, test } from 'vitest';
import type { Platform } from './platform.ts';
import { createSession, explainError } from './session.ts';

const userId = '6f0660ca-f5ff-45be-958e-340d5b28c692';
const storageKey = 'sealpost-session';

type Answer = { readonly status?: number; readonly body?: object; readonly headers?: Record<string, string> };

const feedsAnswer: Answer = { body: { feeds: [] } };
const refusal: Answer = {
  status: 401,
  body: { error: 'no', message: 'no', code: 'unauthorized', requestId: 'r' },
};

const storageOf = (stored: Map<string, string>) => ({
  getItem: (key: string) => stored.get(key) ?? null,
  setItem: (key: string, value: string) => void stored.set(key, value),
  removeItem: (key: string) => void stored.delete(key),
});

/** A window of which tests see the address, the storage, and what is fetched. Without a browser it shares no storage or channel. */
const openPlatform = (
  hash: string,
  answer: (request: Request) => Answer | undefined = () => feedsAnswer,
  browser: { readonly device: Map<string, string>; readonly BroadcastChannel?: typeof BroadcastChannel } = {
    device: new Map(),
  },
) => {
  const location = { hash, pathname: '/status', search: '?q=x', origin: 'http://127.0.0.1' };
  const written: string[] = [];
  const stored = new Map<string, string>();
  const requests: Request[] = [];
  const listeners: (() => void)[] = [];
  const platform = {
    location,
    history: {
      replaceState: (_state: unknown, _title: string, url: string) => {
        written.push(url);
        location.hash = '';
      },
    },
    sessionStorage: storageOf(stored),
    localStorage: storageOf(browser.device),
    BroadcastChannel: browser.BroadcastChannel,
    fetch: async (input: string, init: RequestInit) => {
      const request = new Request(input, init);
      requests.push(request);
      const { status = 200, body = {}, headers = {} } = answer(request) ?? {};
      if (answer(request) === undefined) throw new TypeError('failed to fetch');
      return new Response(JSON.stringify(body), { status, headers });
    },
    addEventListener: (_name: string, listener: () => void) => void listeners.push(listener),
  } as unknown as Platform; // the parts that a session uses
  return {
    platform,
    location,
    written,
    stored,
    device: browser.device,
    requests,
    hashChanges: () => listeners.forEach((listener) => void listener()),
  };
};

const settled = async (session: ReturnType<typeof createSession>): Promise<void> => {
  while (session.isPending.value)
    await new Promise((resolve) => session.isPending.subscribe((is) => is || resolve(undefined)));
};

test('session: starts signed out, without a request', () => {
  const { platform, requests, written } = openPlatform('');
  const session = createSession(platform);
  expect(session.userId.value).toBeUndefined();
  expect(session.isPending.value).toBe(false);
  expect(requests).toEqual([]);
  expect(written).toEqual([]);
});

const isExchange = (request: Request): boolean =>
  request.url === 'http://127.0.0.1/sign-in' && request.method === 'POST';
const credentials: Answer = { body: { userId, secret: 'veryhidden' } };
/** A demo that takes each code once. */
const demoOf = () => {
  const taken = new Set<string>();
  return (request: Request): Answer => {
    if (!isExchange(request)) return feedsAnswer;
    const code = request.headers.get('X-Sign-In-Code') ?? '';
    if (taken.has(code)) return refusal;
    taken.add(code);
    return credentials;
  };
};
const newLink = 'Run "sealpost demo --link" in the demo’s folder for a new link, or restart the demo.';

test('session: a link signs in with its code, which is removed from the address before any request', async () => {
  const { platform, written, device, requests } = openPlatform('#sign-in=the.one-time_code', (request) => {
    expect(written).toEqual(['/status?q=x']);
    return isExchange(request) ? credentials : feedsAnswer;
  });
  const session = createSession(platform);
  expect(written).toEqual(['/status?q=x']);
  expect(session.isPending.value).toBe(true);
  await settled(session);
  expect(session.userId.value).toBe(userId);
  expect(session.credentialLocation.value).toBe('tab');
  expect(requests.map(({ url }) => url)).toEqual(['http://127.0.0.1/sign-in', 'http://127.0.0.1/api/v1/feeds']);
  expect(requests[0]?.headers.get('X-Sign-In-Code')).toBe('the.one-time_code');
  const sent = requests.map(({ url, headers }) => `${url} ${JSON.stringify([...headers])}`).join();
  expect(sent).not.toContain('veryhidden');
  expect(JSON.stringify([...device])).not.toContain('veryhidden');
});

test('session: a used or incomplete link says how to get another one', async () => {
  const answered = openPlatform('#sign-in=used', (request) => (isExchange(request) ? refusal : feedsAnswer));
  const session = createSession(answered.platform);
  await settled(session);
  expect(session.userId.value).toBeUndefined();
  expect(explainError(session.refusal.value)).toEqual({
    problem: 'The link was already used or has expired.',
    advice: newLink,
  });
  session.dismissRefusal();
  expect(session.refusal.value).toBeUndefined();
  for (const hash of ['#sign-in=', `#sign-in=${userId}:secret`]) {
    const { platform, written, requests } = openPlatform(hash);
    const cut = createSession(platform);
    await settled(cut);
    expect([written, requests]).toEqual([['/status?q=x'], []]);
    expect(explainError(cut.refusal.value)).toEqual({ problem: 'The link is incomplete.', advice: newLink });
  }
});

test('session: a server without links, or without a response, does not sign in', async () => {
  for (const answer of [{ status: 405 }, { body: {} }, { body: { userId: 1, secret: 'x' } }, undefined]) {
    const { platform } = openPlatform('#sign-in=code', (request) => (isExchange(request) ? answer : feedsAnswer));
    const session = createSession(platform);
    await settled(session);
    expect(session.userId.value).toBeUndefined();
    expect(session.refusal.value).toBeDefined();
  }
});

test('session: a link opened in an open page signs in too', async () => {
  const { platform, location, hashChanges, written } = openPlatform('#main', demoOf());
  const session = createSession(platform);
  expect(written).toEqual([]);
  location.hash = '#sign-in=code';
  hashChanges();
  await settled(session);
  expect(session.userId.value).toBe(userId);
  expect(written).toEqual(['/status?q=x']);
});

test('session: a link does not replace a signed-in account until the user agrees', async () => {
  const other = '00000000-f5ff-45be-958e-340d5b28c692';
  const { platform, stored, requests } = openPlatform('#sign-in=code', demoOf());
  stored.set(storageKey, JSON.stringify({ userId: other, secret: 'theirs' }));
  const session = createSession(platform);
  await settled(session);
  expect([session.userId.value, session.isSwitchOffered.value]).toEqual([other, true]);
  expect(requests.filter(isExchange)).toEqual([]);
  session.decideSwitch(true);
  expect(session.isSwitchOffered.value).toBe(false);
  await settled(session);
  expect([session.userId.value, stored.get(storageKey)?.includes('theirs')]).toEqual([userId, false]);
});

test('session: declining the switch keeps the account, and the code is never used', async () => {
  const { platform, location, hashChanges, requests } = openPlatform('', demoOf());
  const session = createSession(platform);
  await session.signIn({ userId: '00000000-f5ff-45be-958e-340d5b28c692', secret: 'theirs' }, true);
  location.hash = '#sign-in=code';
  hashChanges();
  expect(session.isSwitchOffered.value).toBe(true);
  session.decideSwitch(false);
  expect([session.userId.value, session.isSwitchOffered.value]).toEqual([
    '00000000-f5ff-45be-958e-340d5b28c692',
    false,
  ]);
  expect(requests.filter(isExchange)).toEqual([]);
});

test('session: a switch with a used link keeps the previous account signed in and stored', async () => {
  const other = '00000000-f5ff-45be-958e-340d5b28c692';
  const { platform, stored } = openPlatform('#sign-in=code', (request) =>
    isExchange(request) ? refusal : feedsAnswer,
  );
  stored.set(storageKey, JSON.stringify({ userId: other, secret: 'theirs' }));
  const session = createSession(platform);
  await settled(session);
  session.decideSwitch(true);
  await settled(session);
  expect([session.userId.value, stored.has(storageKey)]).toEqual([other, true]);
  expect(session.refusal.value).toBeDefined();
});

test('session: after a reload the tab is still signed in', async () => {
  const { platform } = openPlatform('#sign-in=code', demoOf());
  await settled(createSession(platform));
  const reloaded = createSession(platform);
  await settled(reloaded);
  expect([reloaded.userId.value, reloaded.refusal.value]).toEqual([userId, undefined]);
});

test('session: a new tab gets the credentials of another one, a sign-out ends all, and none is asked then', async () => {
  const browser = { device: new Map<string, string>(), BroadcastChannel };
  const first = createSession(openPlatform('', undefined, browser).platform);
  await first.signIn({ userId, secret: 'a' }, false);
  expect(JSON.stringify([...browser.device])).not.toContain(userId);
  const second = createSession(openPlatform('', undefined, browser).platform);
  expect(second.isPending.value).toBe(true);
  await expect.poll(() => [second.userId.value, second.credentialLocation.value]).toEqual([userId, 'tab']);
  second.signOut();
  await expect.poll(() => first.userId.value).toBeUndefined();
  const third = createSession(openPlatform('', undefined, browser).platform);
  expect([third.isPending.value, third.userId.value]).toEqual([false, undefined]);
});

test('session: a new tab that finds no other one signed in is signed out', async () => {
  const device = new Map([['sealpost-signed-in', 'yes']]); // its tabs are closed
  const session = createSession(openPlatform('', undefined, { device, BroadcastChannel }).platform);
  await settled(session);
  expect([session.userId.value, session.refusal.value]).toEqual([undefined, undefined]);
});

/** A channel that sends nothing before it is released, as that of a tab whose page is busy. */
const busyChannel = () => {
  const held: (() => void)[] = [];
  class BusyChannel extends BroadcastChannel {
    override postMessage(message: unknown): void {
      held.push(() => super.postMessage(message));
    }
  }
  return { BusyChannel: BusyChannel as typeof BroadcastChannel, held }; // the class's static side is the same
};

test('session: a tab that answers late signs a new tab in too, but not one that was signed in meanwhile', async () => {
  const device = new Map<string, string>();
  const { BusyChannel, held } = busyChannel();
  const first = createSession(openPlatform('', undefined, { device, BroadcastChannel: BusyChannel }).platform);
  await first.signIn({ userId, secret: 'a' }, false);
  const waiting = createSession(openPlatform('', undefined, { device, BroadcastChannel }).platform);
  const switched = createSession(openPlatform('', undefined, { device, BroadcastChannel }).platform);
  await settled(waiting);
  await settled(switched);
  expect([waiting.userId.value, switched.userId.value]).toEqual([undefined, undefined]);
  const other = '00000000-0000-4000-8000-000000000001';
  await switched.signIn({ userId: other, secret: 'b' }, false);
  await expect.poll(() => held.length).toBe(2);
  held.forEach((release) => void release());
  await expect.poll(() => waiting.userId.value).toBe(userId);
  expect(switched.userId.value).toBe(other);
});

test('session: a tab that is asked while it checks its own credentials answers once it is signed in', async () => {
  const device = new Map([['sealpost-signed-in', 'yes']]);
  let check = (): void => {};
  const checked = new Promise<void>((resolve) => {
    check = resolve;
  });
  const { platform, stored } = openPlatform('', undefined, { device, BroadcastChannel });
  const { fetch } = platform;
  stored.set(storageKey, JSON.stringify({ userId, secret: 'a' }));
  const asked = new BroadcastChannel('sealpost-session');
  const first = createSession({ ...platform, fetch: (...request) => checked.then(() => fetch(...request)) });
  const second = createSession(openPlatform('', undefined, { device, BroadcastChannel }).platform);
  await new Promise((resolve) => asked.addEventListener('message', resolve));
  asked.close();
  check();
  await expect.poll(() => [first.userId.value, second.userId.value]).toEqual([userId, userId]);
});

test('session: stored credentials sign in again, and are removed if the server rejects them', async () => {
  const { platform, stored } = openPlatform('', () => refusal);
  stored.set(storageKey, JSON.stringify({ userId, secret: 'old' }));
  const session = createSession(platform);
  await settled(session);
  expect(session.userId.value).toBeUndefined();
  expect(session.refusal.value).toBeDefined();
  expect(stored.size).toBe(0);
});

test('session: stored credentials survive an outage', async () => {
  const { platform, stored } = openPlatform('', () => undefined);
  stored.set(storageKey, JSON.stringify({ userId, secret: 'old' }));
  const session = createSession(platform);
  await settled(session);
  expect(session.userId.value).toBe(userId);
  expect(session.refusal.value).toBeUndefined();
  expect(stored.size).toBe(1);
});

test('session: stored credentials survive a refusal that is not about them', async () => {
  for (const code of ['too_many_failures', 'clock_skew', 'route_not_found']) {
    const body = { error: 'x', message: 'x', code, requestId: 'r' };
    const { platform, stored } = openPlatform('', () => ({ status: code === 'too_many_failures' ? 429 : 400, body }));
    stored.set(storageKey, JSON.stringify({ userId, secret: 'old' }));
    const session = createSession(platform);
    await settled(session);
    expect([code, session.userId.value, session.refusal.value !== undefined, stored.size]).toEqual([
      code,
      undefined,
      true,
      1,
    ]);
  }
});

test('session: invalid data in the storage does not sign in', async () => {
  for (const text of ['null', '{', '{"userId":1}', '[]']) {
    const { platform, stored } = openPlatform('');
    stored.set(storageKey, text);
    expect(createSession(platform).userId.value).toBeUndefined();
  }
});

test('session: credentials stay in the tab, on the device if the user chooses, and are removed on sign-out', async () => {
  const { platform, stored, device } = openPlatform('');
  const session = createSession(platform);
  await session.signIn({ userId, secret: 'a' }, false);
  expect([session.credentialLocation.value, stored.has(storageKey), device.has(storageKey)]).toEqual([
    'tab',
    true,
    false,
  ]);
  await session.signIn({ userId, secret: 'a' }, true);
  expect([session.credentialLocation.value, JSON.parse(device.get(storageKey) ?? '')]).toEqual([
    'device',
    { userId, secret: 'a' },
  ]);
  const later = createSession(openPlatform('', undefined, { device }).platform);
  await settled(later);
  expect([later.userId.value, later.credentialLocation.value]).toEqual([userId, 'device']);
  later.signOut();
  session.signOut();
  expect([stored.size, device.size, session.userId.value]).toEqual([0, 0, undefined]);
});

test('session: where storage is blocked, the page alone is signed in', async () => {
  const { platform } = openPlatform('');
  const blocked = {
    ...platform,
    get sessionStorage(): never {
      throw new Error('blocked');
    },
    get localStorage(): never {
      throw new Error('blocked');
    },
  };
  const session = createSession(blocked);
  await session.signIn({ userId, secret: 'a' }, true);
  expect([session.userId.value, session.credentialLocation.value]).toEqual([userId, 'page']);
});

test('session: a failed sign-in rejects and changes nothing', async () => {
  const { platform } = openPlatform('', () => refusal);
  const session = createSession(platform);
  await expect(session.signIn({ userId, secret: 'wrong' }, true)).rejects.toMatchObject({ code: 'unauthorized' });
  expect(session.userId.value).toBeUndefined();
  await expect(session.signIn({ userId: 'me', secret: 'wrong' }, true)).rejects.toMatchObject({
    code: 'invalid_option',
  });
});

test('session: rate limits are kept by route, most recent first, and cleared on sign-out', async () => {
  const headers = { 'RateLimit-Limit': '10', 'RateLimit-Remaining': '7', 'RateLimit-Reset': '1' };
  const { platform } = openPlatform('', () => ({ ...feedsAnswer, headers }));
  const session = createSession(platform);
  await session.signIn({ userId, secret: 'a' }, false);
  expect(session.rateLimit.value).toMatchObject({ path: '/api/v1/feeds', limit: 10, remaining: 7, resetSeconds: 1 });
  await session.client.value.discovery();
  expect(session.rateLimits.value.map(({ path }) => path)).toEqual(['/api/v1/discovery', '/api/v1/feeds']);
  session.signOut();
  expect(session.rateLimits.value).toEqual([]);
});

test('session: errors are explained in words for users', async () => {
  const explain = async (code: string, status: number, details: object = {}, headers: Record<string, string> = {}) => {
    const { platform } = openPlatform('', () => ({
      status,
      body: { error: 'x', message: 'x', code, requestId: 'r', ...details },
      headers,
    }));
    const error: unknown = await createSession(platform)
      .signIn({ userId, secret: 'a' }, false)
      .catch((thrown) => thrown);
    return explainError(error);
  };
  expect((await explain('clock_skew', 400, { serverTimeMs: Date.now() - 90_000 })).problem).toMatch(
    /^This device’s clock is (89|90|91) seconds ahead of the server’s\.$/,
  );
  expect(await explain('too_many_failures', 429, {}, { 'Retry-After': '30' })).toEqual({
    problem: 'Too many failed requests from your IP address.',
    advice: 'Wait 30 seconds, check the user ID and secret, then try again.',
  });
  expect(explainError(new Error('x')).advice).toBe('Reload the page.');
  const absent = new SealpostError('not_supported', 'This server has no candles (404).', { advice: 'Use pages().' });
  expect(explainError(absent)).toEqual({
    problem: 'This server has no candles (404).',
    advice: 'Ask the server’s operator to update it.', // a user of the page has no pages()
  });
});

test('session: an aborted sign-in rejects, and a response that arrives later does not sign in', async () => {
  const { platform } = openPlatform('');
  const abort = new AbortController();
  const late: Platform = {
    ...platform,
    fetch: async (...request) => {
      abort.abort();
      return platform.fetch(...request);
    },
  };
  const session = createSession(late);
  await expect(session.signIn({ userId, secret: 'a' }, true, abort.signal)).rejects.toMatchObject({ code: 'aborted' });
  expect([session.userId.value, session.isPending.value]).toEqual([undefined, false]);
});

test('session: a 403 without a code says that the account may not read this, and kept credentials stay', async () => {
  const { platform, stored } = openPlatform('', () => ({ status: 403, body: { message: 'Forbidden' } }));
  stored.set(storageKey, JSON.stringify({ userId, secret: 'a' }));
  const session = createSession(platform);
  await settled(session);
  expect(explainError(session.refusal.value)).toEqual({
    problem: 'Your account may not read this.',
    advice: 'Ask the server’s operator for access, or sign in with another account.',
  });
  expect(stored.has(storageKey)).toBe(true);
});
