// Owns the way of a call: to one base URL after the other, again after a pause, until it is answered or its time is up.
import { SealpostError } from '../errors.ts';
import { readWhole, type Settings, timeoutMaxMs } from '../options.ts';
import { type Answered, type AttemptState, attempt, type Outcome } from './attempt.ts';
import { type Call, openCall } from './call.ts';
import { type Clock, createClock } from './clock.ts';
import { createEndpoints, type Endpoints } from './endpoints.ts';
import { authOf } from './paths.ts';
import type { InnerCallOptions, Requester } from './requester.ts';
import { nextStep, pauseMs } from './retry-rules.ts';

/** Makes the requester. The secret stays in the function that signs. */
export const createRequester = (settings: Settings): Requester => {
  const clock = createClock(settings.nowMs);
  const baseUrls = createEndpoints(settings.baseUrls, () => performance.now());
  const nowMs = (): number => {
    const { machineMs, offsetMs } = clock.now();
    return machineMs + offsetMs;
  };
  return {
    get: async <T>(target: string, options: InnerCallOptions = {}) => {
      if (settings.signer === undefined && authOf(target.replace(/\?.*$/s, '')) === 'required')
        throw new SealpostError('missing_credentials', 'This call needs a user id and a secret.');
      const timeoutMs = readWhole('timeoutMs', options.timeoutMs ?? settings.timeoutMs, 1, timeoutMaxMs);
      const call = openCall(options, timeoutMs);
      try {
        const { body, ...rest } = await answerTo(target, call, withOptions(settings, options), baseUrls, clock);
        return { body: body as T, ...rest }; // whoever asks for a shape checks it
      } finally {
        call.close();
      }
    },
    sign: async (method, target) => {
      const key = await settings.signer?.key();
      return { headers: { ...settings.headers, ...key?.sign(method, target, nowMs()) }, key };
    },
    renew: async ({ key }) => key !== undefined && (await settings.signer?.renew(key)) === true,
    get baseUrls() {
      return baseUrls.inOrder();
    },
    get wsUrls() {
      return settings.wsUrls === settings.baseUrls ? baseUrls.inOrder() : settings.wsUrls;
    },
    fetch: settings.fetch,
    lacks: new Set(),
    emit: settings.emit,
    nowMs,
  };
};

const withOptions = (settings: Settings, { retryRateLimited }: InnerCallOptions): Settings =>
  retryRateLimited === undefined ? settings : { ...settings, retryRateLimited };

/** Round after round, with pauses between them. */
const answerTo = async (
  target: string,
  { signal, remainingMs }: Call,
  settings: Settings,
  baseUrls: Endpoints,
  clock: Clock,
): Promise<Answered> => {
  const { retries, retryRateLimited, random, sleep, emit } = settings;
  const state: AttemptState = { target, signal, attempts: 0, hasCorrectedClock: false, hasRenewedKey: false };
  for (let round = 1; ; round += 1) {
    const outcome = await askEach(state, settings, baseUrls, clock);
    if (!(outcome instanceof SealpostError)) return outcome;
    if (round > retries || nextStep(outcome, retryRateLimited) === 'never') throw outcome;
    const waitMs = pauseMs(round, random, askedPauseMs(outcome));
    if (waitMs >= remainingMs()) throw outcome; // waiting in vain helps nobody
    emit({ kind: 'retry', path: target.replace(/\?.*$/s, ''), delayMs: waitMs, code: outcome.code });
    await sleep(waitMs, signal);
    signal.throwIfAborted();
  }
};

/** Every base URL once, until one gives an answer that the others would give too. */
const askEach = async (
  state: AttemptState,
  settings: Settings,
  baseUrls: Endpoints,
  clock: Clock,
): Promise<Outcome> => {
  let failure: SealpostError | undefined;
  for (const baseUrl of baseUrls.inOrder()) {
    const outcome = await attempt(baseUrl, state, settings, clock);
    if (outcome instanceof SealpostError && nextStep(outcome, settings.retryRateLimited) === 'elsewhere') {
      // The longest pause that anyone asks for is kept.
      if (failure === undefined || askedPauseMs(outcome) > askedPauseMs(failure)) failure = outcome;
      continue;
    }
    if (baseUrls.answered(baseUrl))
      settings.onWarning({ code: 'failover', message: `Requests go to ${baseUrl} from now on.` });
    return outcome;
  }
  return failure as SealpostError; // there is a base URL, and it failed
};

const askedPauseMs = ({ details: { retryAfterSeconds } }: SealpostError): number =>
  typeof retryAfterSeconds === 'number' ? retryAfterSeconds * 1_000 : 0;
