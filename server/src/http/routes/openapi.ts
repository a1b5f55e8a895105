// GET /openapi.json: the document of this deployment, with its own bounds, rendered once.
import { createOpenApi, type DocumentedBounds, type OpenApiDocument } from '@sealpost/protocol/openapi';
import { withGzip } from '../whole-answer.ts';
import type { Handler } from './context.ts';

/** The document that page and route show. */
export const documentOf = ({ feedIdsMax, retentionDays, requestsPerSecond }: DocumentedBounds): OpenApiDocument =>
  createOpenApi({ bounds: { feedIdsMax, retentionDays, requestsPerSecond } });

export const createOpenApiRoute = (document: OpenApiDocument): Handler<'openapi'> => {
  const rendered = withGzip(Buffer.from(JSON.stringify(document)));
  return () => ({ status: 200, ...rendered, cacheControl: 'public, max-age=300' });
};
