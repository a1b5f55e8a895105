// The control of tests/access/timing.test.ts: the read path's own listener, pipeline and admission control, with an authenticator that rejects unknown users
// before it computes anything. Prints its port; the user that it knows is its first argument.
import { errorOf } from '@sealpost/protocol';
import { bucketKeysOf, type Caller, createAuthenticator } from '../../server/src/access/authenticate.ts';
import { createHmacKey } from '../../server/src/access/hmac.ts';
import { createRateLimiter } from '../../server/src/access/rate-limit.ts';
import { createAdmissionControl } from '../../server/src/http/admission-control.ts';
import { createPipeline, type Handlers, type PipelineParts } from '../../server/src/http/pipeline.ts';
import { createQueryReader } from '../../server/src/http/query.ts';
import { openHttpServer } from '../../server/src/http/server.ts';
import { defaultApiRules as rules } from '../support/running-api.ts';

const [, , userId = ''] = process.argv;
const known: Caller = {
  userId,
  keys: [createHmacKey(Buffer.from('a secret that nobody signs with'))],
  secretIds: ['one'],
  rateLimits: {},
  bucketKeys: bucketKeysOf(userId),
};
const honest = createAuthenticator((id) => (id === userId ? known : undefined), rules.skewMaxMs);
let count = 0;
const newRequestId = (): string => `control-${(count++).toString(36)}`;
const unreachable = () => {
  throw new Error('Nobody signs correctly here.');
};
const monotonicMs = () => performance.now();
const parts: PipelineParts = {
  handlers: {} as Handlers, // no request gets this far
  admission: createAdmissionControl({
    authenticator: {
      ...honest,
      authenticate: (method, target, values, nowMs) => {
        if (values.userId !== userId) throw errorOf('unauthorized');
        return honest.authenticate(method, target, values, nowMs);
      },
    },
    accounts: createRateLimiter(100),
    addresses: createRateLimiter(100),
    rules,
    useSignature: unreachable,
    monotonicMs,
    readableOf: unreachable,
  }),
  readQuery: createQueryReader(rules),
  nowMs: () => Date.now(),
  reportNowMs: () => Date.now(),
  monotonicMs,
  newRequestId,
  isDraining: () => false,
  load: { begin: () => 0 },
  contextOf: unreachable,
  observe: () => {},
  isTls: false,
};
const { url } = await openHttpServer({ host: '127.0.0.1', port: 0 }, createPipeline(parts).handle, newRequestId);
process.stdout.write(`${JSON.stringify({ port: Number(new URL(url).port) })}\n`);
