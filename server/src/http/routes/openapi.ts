// GET /openapi.json: the document of this deployment, with its own bounds, rendered on first request: a start does not wait for it.
import { createOpenApi, type DocumentedBounds, type OpenApiDocument } from '@sealpost/protocol/openapi';
import { withGzip } from '../whole-answer.ts';
import type { Handler } from './context.ts';

/** The document that page and route show, made when it is first asked for. */
export const documentOf = ({
  feedIdsMax,
  retentionDays,
  requestsPerSecond,
}: DocumentedBounds): (() => OpenApiDocument) => {
  let document: OpenApiDocument | undefined;
  return () => (document ??= createOpenApi({ bounds: { feedIdsMax, retentionDays, requestsPerSecond } }));
};

export const createOpenApiRoute = (document: () => OpenApiDocument): Handler<'openapi'> => {
  let rendered: ReturnType<typeof withGzip> | undefined;
  return () => {
    rendered ??= withGzip(Buffer.from(JSON.stringify(document())));
    return { status: 200, ...rendered, cacheControl: 'public, max-age=300' };
  };
};
