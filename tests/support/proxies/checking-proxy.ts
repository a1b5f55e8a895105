// A proxy that passes every request and answer on as it came, and holds each answer against the OpenAPI document: for clients and
// servers that are other programs.
import { createServer, request as httpRequest, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createOpenApiWatch } from '../openapi-check.ts';

export type CheckingProxy = {
  readonly url: string;
  /** Throws when an answer since the last call was not as documented. */
  readonly report: () => void;
  readonly close: () => Promise<void>;
};

/** Listens on a free port; `upstreamOf` is asked for each request, so that the server behind may change. */
export const openCheckingProxy = async (upstreamOf: () => string): Promise<CheckingProxy> => {
  const openApi = createOpenApiWatch();
  const forward: RequestListener = (request, response) => {
    const { hostname, port } = new URL(upstreamOf());
    const { method, url: path, rawHeaders } = request;
    const upstream = httpRequest({ hostname, port, method, path, headers: rawHeaders as never, agent: false });
    upstream.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.rawHeaders);
      answer.pipe(response);
    });
    upstream.on('error', () => response.destroy());
    request.pipe(upstream);
  };
  const server = createServer(openApi.watch(forward));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  return {
    url: `http://127.0.0.1:${port}`,
    report: openApi.report,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
