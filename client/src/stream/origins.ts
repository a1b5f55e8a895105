// Owns which origins a stream connects to: what the service tells in answer to HEAD /.
import { raceSignal } from '../request/call.ts';
import { isAbsent } from '../request/extensions.ts';
import type { Requester } from '../request/requester.ts';
import { correctClock, isFinal, retryAfterMsOf } from './connection.ts';
import { backOffMs, type ReconnectRules, sleep } from './pause.ts';
import { createWatchdog, handshakeMs, toRefusal } from './transport.ts';

/** Origins of one service at most, as many as an account may have sockets. */
const originsMax = 20;

/** Reads `{001,002}`; none where the header is absent or empty. */
export const parseOrigins = (header: string | null): readonly string[] => {
  const names = /^\{(.*)\}$/.exec(header?.trim() ?? '')?.[1]?.split(',') ?? [];
  return [...new Set(names.map((name) => name.trim()).filter((name) => name !== ''))].slice(0, originsMax);
};

const askOnce = async (requester: Requester, url: string, signal: AbortSignal): Promise<readonly string[]> => {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  const watchdog = createWatchdog(handshakeMs, abort);
  signal.addEventListener('abort', abort);
  watchdog.touch();
  try {
    const { headers } = await raceSignal(requester.sign('HEAD', '/'), controller.signal);
    const init = {
      method: 'HEAD',
      headers,
      redirect: 'manual',
      credentials: 'omit',
      signal: controller.signal,
    } as const;
    const response = await requester.fetch(`${url}/`, init);
    if (response.status === 200) return parseOrigins(response.headers.get('X-Cll-Available-Origins'));
    const { status, headers: told } = response;
    throw toRefusal({ status, headers: told, text: '' }, url, requester.nowMs);
  } finally {
    watchdog.stop();
    signal.removeEventListener('abort', abort);
  }
};

/** Asks the hosts of WebSockets, as the published SDKs do, one after the other until one answers; `onFailure` is told why each did not. */
export const askOrigins = async (
  requester: Requester,
  reconnect: ReconnectRules,
  random: () => number,
  signal: AbortSignal,
  onFailure: (reason: string, delayMs: number) => void,
): Promise<readonly string[]> => {
  let hasCorrectedClock = false;
  for (let failures = 0; !signal.aborted; failures += 1) {
    const urls = requester.wsUrls;
    try {
      return await askOnce(requester, urls[failures % urls.length] as string, signal); // there is at least one
    } catch (error) {
      if (signal.aborted) break;
      // A server without this question has no origins, nor has one that answers a signed GET and refuses this.
      if (isAbsent(error) || (isFinal(error) && hasCorrectedClock)) return [];
      if (isFinal(error)) {
        // An answer to HEAD has no body: a GET tells the time, or what is really wrong.
        hasCorrectedClock = true;
        await correctClock(requester, signal);
      }
      const delayMs = backOffMs(reconnect, failures, random, retryAfterMsOf(error));
      onFailure(error instanceof Error ? error.message : 'the request failed', delayMs);
      await sleep(delayMs, signal);
    }
  }
  return [];
};
