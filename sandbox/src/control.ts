// The control API of a sandbox, JSON on the private listener: GET /sandbox, POST /sandbox/events, GET /sandbox/record, GET /sandbox/requests, GET
// /sandbox/schema and DELETE /sandbox/faults/ID.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { parseEvent, ScenarioError } from './scenario/parse.ts';
import { scenarioSchema } from './scenario/schema.ts';
import type { ScenarioRunner } from './scenario-runner.ts';

/** Bytes of a request's body. */
const bodyBytesMax = 1_048_576;
const eventsPerRequest = 1_000;

/** A request that is rejected. */
class ControlError extends Error {
  override readonly name = 'ControlError';
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Answers what reaches /sandbox and below. The scenario runner is there once the sandbox has started. */
export const createControl =
  (runner: () => ScenarioRunner | undefined) =>
  async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const send = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void => {
      const text = `${JSON.stringify(body)}\n`;
      response.writeHead(status, {
        'Content-Type': 'application/json',
        'Content-Length': Buffer.byteLength(text),
        'Cache-Control': 'no-store',
        'X-Content-Type-Options': 'nosniff',
        ...headers,
      });
      response.end(text);
    };
    try {
      checkType(request);
      const running = runner();
      if (running === undefined) throw new ControlError(503, 'starting', 'The sandbox is starting. Retry shortly.');
      send(200, await answer(running, request));
    } catch (error) {
      const { status, ...body } = explain(error);
      // What is left of a body is not read.
      send(status, body, { Connection: 'close', ...(status === 405 && { Allow: 'GET, POST, DELETE' }) });
    }
  };

type Problem = { readonly status: number; readonly error: string; readonly code: string; readonly field?: string };

const explain = (error: unknown): Problem => {
  if (error instanceof ControlError) return { status: error.status, error: error.message, code: error.code };
  if (error instanceof ScenarioError)
    return { status: 400, error: error.message, code: 'malformed_argument', field: error.path };
  return { status: 500, error: 'Unexpected error.', code: 'internal_error' };
};

/** Rejects what a form of a web page could send; the private listener rejects all else that comes from pages. */
const checkType = ({ headers, method }: IncomingMessage): void => {
  if (method === 'POST' && !/^application\/json\s*(;|$)/i.test(headers['content-type'] ?? ''))
    throw new ControlError(415, 'unsupported_media_type', 'Send JSON with Content-Type: application/json.');
};

const answer = async (runner: ScenarioRunner, request: IncomingMessage): Promise<unknown> => {
  const { method, url = '' } = request;
  const [path = ''] = url.split('?', 1);
  const isRead = method === 'GET' || method === 'HEAD';
  if (path === '/sandbox' && isRead) return runner.state();
  if (path === '/sandbox/record' && isRead) return runner.record();
  if (path === '/sandbox/schema' && isRead) return scenarioSchema();
  if (path === '/sandbox/requests' && isRead) return { requests: runner.requests() };
  if (path === '/sandbox/events' && method === 'POST') return setEvents(runner, await readJson(request));
  const [, id] = /^\/sandbox\/faults\/([^/]{1,200})$/.exec(path) ?? [];
  if (id !== undefined && method === 'DELETE') {
    if (await runner.removeFault(decodeURIComponentOr(id))) return { removed: true };
    throw new ControlError(404, 'fault_not_found', 'There is no such fault. GET /sandbox lists them.');
  }
  const known =
    ['/sandbox', '/sandbox/events', '/sandbox/record', '/sandbox/requests', '/sandbox/schema'].includes(path) ||
    id !== undefined;
  if (known) throw new ControlError(405, 'method_not_allowed', `${path} does not answer ${method}.`);
  throw new ControlError(
    404,
    'route_not_found',
    'The paths here are /sandbox, /sandbox/events, /sandbox/record, /sandbox/requests, /sandbox/schema and /sandbox/faults/ID.',
  );
};

const decodeURIComponentOr = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

const setEvents = async (runner: ScenarioRunner, body: unknown): Promise<unknown> => {
  const isList = Array.isArray(body);
  const given: readonly unknown[] = isList ? body : [body];
  if (given.length === 0 || given.length > eventsPerRequest)
    throw new ScenarioError('', `The list has ${given.length} events, expected 1 to ${eventsPerRequest}.`);
  const events = given.map((event, i) => parseEvent(event, isList ? `[${i}]` : ''));
  return { events: await runner.set(events), state: runner.state() };
};

const readJson = async (request: IncomingMessage): Promise<unknown> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) throw new ControlError(413, 'body_too_large', `The body exceeds ${bodyBytesMax} bytes.`);
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    throw new ControlError(400, 'malformed_body', 'The body is not JSON.');
  }
};
