// GET /docs: the same document as a web page, rendered on first request.
import type { OpenApiDocument } from '@sealpost/protocol/openapi';
import { apiPagePolicy, renderApiPage } from '../api-page.ts';
import { pageHeaders } from '../page-headers.ts';
import { withGzip } from '../whole-answer.ts';
import type { Handler } from './context.ts';

const headers = pageHeaders(apiPagePolicy);

/** `url` is where the examples send their requests; it is known once the service listens. */
export const createDocsRoute = (document: () => OpenApiDocument, url: () => string): Handler<'docs'> => {
  let rendered: ReturnType<typeof withGzip> | undefined;
  return () => {
    rendered ??= withGzip(Buffer.from(renderApiPage(document(), { serverUrl: withoutWildcard(url()) })));
    const contentType = 'text/html; charset=utf-8';
    return { status: 200, ...rendered, contentType, cacheControl: 'public, max-age=300', headers };
  };
};

/** An address that means every interface is none to send a request to. */
const withoutWildcard = (url: string): string => url.replace(/\/\/(0\.0\.0\.0|\[::\])/, '//localhost');
