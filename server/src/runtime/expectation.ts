// Answers a client that waits for 100 Continue before it sends its body.
import type { IncomingMessage, ServerResponse } from 'node:http';

/** To be called by whoever is going to read the body; a client that is rejected instead does not send it. */
export function continueIfAsked({ headers, httpVersion }: IncomingMessage, response: ServerResponse): void {
  if (httpVersion === '1.1' && headers.expect?.toLowerCase() === '100-continue') response.writeContinue();
}
