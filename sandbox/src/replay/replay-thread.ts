// The thread that reads and signs replayed reports. It answers in the order of requests.
import { parentPort, workerData } from 'node:worker_threads';
import type { NetworkRequest } from '../network-thread.ts';
import { openReplay, type ReplayOptions } from './replay.ts';

const replay = await openReplay(workerData as ReplayOptions); // given by network.ts

let last: Promise<void> = Promise.resolve();
const answer = async (request: NetworkRequest): Promise<void> => {
  if (request.act === 'add') await replay.add(request.effects);
  const answered = request.act === 'lines' ? await replay.linesOf(request.from, request.to) : [];
  parentPort?.postMessage({ answer: answered });
};
parentPort?.on('message', (request: NetworkRequest) => {
  last = last.then(() => answer(request));
});
parentPort?.postMessage({ ready: true });
