// GET /openapi.json: the document of this deployment, with its own bounds, rendered on first request: a start does not wait for it.
import { createOpenApi, type DocumentedBounds } from '@sealpost/protocol/openapi';
import { withGzip } from '../answer.ts';
import type { Handler } from './context.ts';

export function createOpenApiRoute({
  feedIdsMax,
  retentionDays,
  requestsPerSecond,
}: DocumentedBounds): Handler<'openapi'> {
  let rendered: ReturnType<typeof withGzip> | undefined;
  return () => {
    const bounds = { feedIdsMax, retentionDays, requestsPerSecond };
    rendered ??= withGzip(Buffer.from(JSON.stringify(createOpenApi({ bounds }))));
    return { status: 200, ...rendered, cacheControl: 'public, max-age=300' };
  };
}
