// Handshakes that wait for the process that remembers signatures (D250): what is decided for others, or changes, while they do.
import { afterEach, expect, test } from 'vitest';
import { createAskedSignatures, type Handshake } from '../../server/src/access/used-signatures.ts';
import { openEvents, openSocket, RefusedError } from '../support/live-clients.ts';
import { type Credentials, openService, type Service } from '../support/running-api.ts';
import { testStream } from '../support/running-ingest.ts';
import { secondStream } from '../support/signed-reports.ts';

const nowMs = 1_763_200_000_000;
const feedId = secondStream(1);
const clients: { readonly close: () => void }[] = [];
let service: Service | undefined;
afterEach(async () => {
  for (const { close } of clients.splice(0)) close();
  await service?.close();
  service = undefined;
});

/** A worker's service, and the questions that it asks its primary. */
const openWorker = async () => {
  const questions: (readonly Handshake[])[] = [];
  const { use, receive } = createAskedSignatures((handshakes) => void questions.push(handshakes));
  const waiting: Handshake[] = [];
  const rules = { socketsPerAccount: 2 };
  const opened = await openService(
    [testStream(feedId)],
    new Map(),
    () => nowMs,
    rules,
    undefined,
    (parts) => ({
      ...parts,
      useSignature: (handshake) => {
        waiting.push(handshake);
        return use(handshake);
      },
    }),
  );
  service = opened;
  const openOne = async (isSocket: boolean, who: Credentials): Promise<string> => {
    try {
      if (isSocket) {
        const { webSocket } = await openSocket(opened.url, `/api/v1/ws?feedIDs=${feedId}`, who, nowMs);
        clients.push({ close: () => webSocket.terminate() });
      } else clients.push(await openEvents(opened.url, `/api/v1/reports/stream?feedIDs=${feedId}`, who, nowMs));
      return 'opened';
    } catch (error) {
      return error instanceof RefusedError ? JSON.parse(error.body).code : String(error);
    }
  };
  return { service: opened, waiting, questions, receive, openOne };
};

test('waiting handshakes: those that the primary answers together open no more connections than their account may have', async () => {
  const { service, waiting, questions, receive, openOne } = await openWorker();
  const who = await service.addAccount(['public']);
  const outcomes = Array.from({ length: 6 }, (_, i) => openOne(i % 2 === 0, who));
  await expect.poll(() => waiting.length).toBe(6);
  receive([undefined]); // the first was asked alone
  receive(waiting.slice(1).map(() => undefined));
  const opened = (await Promise.all(outcomes)).filter((outcome) => outcome === 'opened');
  expect([questions.length, opened.length]).toEqual([2, 2]);
});

test('waiting handshakes: a secret that is revoked meanwhile opens nothing', async () => {
  const { service, questions, receive, openOne } = await openWorker();
  for (const isSocket of [true, false]) {
    const who = await service.addAccount(['public']);
    const before = questions.length;
    const outcome = openOne(isSocket, who);
    await expect.poll(() => questions.length).toBe(before + 1);
    await service.rotateSecret(who);
    receive([undefined]);
    expect(await outcome).toBe('unauthorized');
  }
});
