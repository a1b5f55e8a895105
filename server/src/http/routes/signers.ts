// GET /signers.json: the signer sets that reports verify against, retired ones too, because history outlives them.
import { toSignerSetsJson } from '@sealpost/protocol';
import type { Handler } from './context.ts';

export const signers: Handler<'signers'> = (_, { admin }) => ({
  status: 200,
  body: JSON.stringify(toSignerSetsJson(admin.signerSets)),
  cacheControl: 'no-cache',
});
