// One answered request as its observers are told of it.
import type { RequestEvent } from '../../server/src/http/pipeline.ts';

/** A latest report that was read; tests change what they look at. */
export const sampleRequest = (changes: Partial<RequestEvent> = {}): RequestEvent => ({
  kind: 'request',
  requestId: '01890a5d-ac96-774b-bcce-b302099a8057',
  route: 'reportLatest',
  method: 'GET',
  status: 200,
  code: null,
  userId: 'ba2d3a9e-7c1f-4a53-9d0c-0f4f6f2f6a11',
  bytes: 912,
  durationMs: 0.41239,
  ...changes,
});
