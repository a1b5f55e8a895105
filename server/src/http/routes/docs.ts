// GET /docs: the explorer's page, which shows the document of /openapi.json. Without the explorer, a page that names the document.

import { pageHeaders } from '../answer.ts';
import type { FindFile } from '../explorer.ts';
import type { Handler } from './context.ts';

const withoutExplorer = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sealpost API</title>
</head>
<body>
<h1>Sealpost API</h1>
<p><a href="/openapi.json">/openapi.json</a> describes the API of this server as an OpenAPI 3.1 document.
This server runs without the explorer, which shows the document here.</p>
</body>
</html>
`;

/** Nothing is loaded, and nothing runs. */
const policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export function createDocsRoute(findFile: FindFile | undefined): Handler<'docs'> {
  const page = findFile?.('/docs');
  if (page?.whole.status === 200) {
    const { tag: _, ...answer } = page.whole; // 304 is for files alone
    return () => answer;
  }
  const headers = pageHeaders(policy);
  const contentType = 'text/html; charset=utf-8';
  return () => ({ status: 200, body: withoutExplorer, contentType, cacheControl: 'no-cache', headers });
}
