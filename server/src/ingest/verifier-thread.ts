// One thread of the verifier: requests in and verdicts out, in order. This is the thread's entry file.
import { parentPort } from 'node:worker_threads';
import type { ThreadMessage } from '../runtime/threads.ts';
import { startVerifying, type Verdict, type VerifierRequest } from './verification.ts';

const handle = await startVerifying();
const say = (message: ThreadMessage<readonly Verdict[]>): void => parentPort?.postMessage(message);

parentPort?.on('message', (request: VerifierRequest) => {
  const answer = handle(request);
  if (request.signerSets === undefined) say({ answer });
});
say({ ready: true });
