// Origins for high availability: the header that lists them, and a connection to each.
import type { Check } from '../check.ts';
import type { CheckContext } from '../check-context.ts';
import { demand, demandStatus, SkipError } from '../verdict.ts';
import { demandAllFrames } from './delivery.ts';
import { leftMs, requireNewReport } from './websocket.ts';

const originsHeader = 'x-cll-available-origins';
/** Connections are limited per account; a deployment with more origins is checked at these. */
const originsMax = 4;

/** Enough to notice that some are missing. */
const framesWanted = 40;

const readHead = async ({ ask }: CheckContext) => {
  const answer = await ask('/', { method: 'HEAD' });
  if (answer.status === 404 || answer.status === 405)
    throw new SkipError(`HEAD / returned ${answer.status}: the deployment has no origins.`);
  return answer;
};

/** The origins of the header; skips if there are none. */
const readOrigins = async (context: CheckContext): Promise<readonly string[]> => {
  const header = (await readHead(context)).headers[originsHeader];
  if (typeof header !== 'string') throw new SkipError('The deployment lists no origins.');
  return header
    .replace(/^\{|\}$/g, '')
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean);
};

const ha = 'For high availability, SDKs read X-Cll-Available-Origins of HEAD / and open a connection to each origin.';

const eachOpens: Check['run'] = async (context) => {
  for (const origin of (await readOrigins(context)).slice(0, originsMax)) {
    const watch = await context.watchOrigin(origin);
    const opened = await watch.opened;
    demand(opened.ok, `101 for origin ${origin}`, () => (opened.ok ? '' : opened.problem), watch);
  }
};

/** Each origin sends what REST has; an origin that is down sends nothing, or is closed. */
const eachDelivers: Check['run'] = async (context) => {
  const origins = (await readOrigins(context)).slice(0, originsMax);
  const watches = await Promise.all(origins.map((origin) => context.watchOrigin(origin)));
  await requireNewReport(context);
  await context.until(() => watches.every(({ frames }) => frames.length > 0), context.rules.liveMs);
  for (const [i, watch] of watches.entries()) {
    const closed = watch.closed();
    demand(closed === undefined, `origin ${origins[i]} stays open`, () => `closed with ${closed?.code}`, watch);
    demand(watch.frames.length > 0, `frames from origin ${origins[i]}`, () => 'none', watch);
  }
};

/** Each origin sends everything, so that a client may lose the other ones. */
const eachComplete: Check['run'] = async (context) => {
  for (const origin of (await readOrigins(context)).slice(0, originsMax)) {
    const watch = await context.watchOrigin(origin);
    await context.until(
      () => watch.closed() !== undefined || watch.frames.length >= framesWanted,
      leftMs(context, watch),
    );
    await demandAllFrames(context, watch, 1);
  }
};

export const originChecks: readonly Check[] = [
  {
    id: 'origins.head',
    title: 'HEAD / is answered with 200',
    source: 'SDKs',
    sentence: ha,
    run: async (context) => demandStatus(await readHead(context), [200]),
  },
  {
    id: 'origins.header',
    title: 'The header lists origins as {001,002}',
    source: 'SDKs',
    sentence: ha,
    run: async (context) => {
      await readOrigins(context);
      const answer = await readHead(context);
      const header = String(answer.headers[originsHeader]);
      demand(/^\{[\w.-]+(,[\w.-]+)*\}$/.test(header), 'names in braces, separated by commas', () => header, answer);
    },
  },
  {
    id: 'origins.open',
    title: 'A connection to each origin opens',
    source: 'SDKs',
    sentence: ha,
    run: eachOpens,
  },
  {
    id: 'origins.deliver',
    title: 'Each origin delivers reports',
    source: 'SDKs',
    sentence: ha,
    run: eachDelivers,
  },
  {
    id: 'origins.complete',
    title: 'Each origin sends every report that REST has',
    source: 'SDKs',
    sentence: ha,
    run: eachComplete,
  },
  {
    id: 'origins.unknown',
    title: 'An unknown origin is a client error',
    source: 'SDKs',
    sentence: 'A connection goes to the origin that X-Cll-Origin names, or fails.',
    run: async (context) => {
      await readOrigins(context);
      const [{ feedId }] = await context.sample.reporting();
      const watch = await context.handshake(`/api/v1/ws?feedIDs=${feedId}`, {
        headers: { 'X-Cll-Origin': 'no-such-origin' },
      });
      const opened = await watch.opened;
      watch.end();
      const status = opened.ok ? 101 : (opened.refusal?.status ?? 0);
      demand(status >= 400 && status < 500, '4xx', () => (opened.ok ? '101' : opened.problem), watch);
    },
  },
];
