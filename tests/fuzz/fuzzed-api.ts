// The real HTTP server on a real store, for targets that send bytes over sockets.
import type { FeedId, Stream } from '@sealpost/protocol';
import { type Credentials, openService, type Service } from '../support/running-api.ts';
import { testStream } from '../support/running-ingest.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';

export type FuzzedService = {
  readonly service: Service;
  readonly port: number;
  readonly feedId: FeedId;
  readonly account: Credentials;
  readonly nowMs: () => number;
};

const start = 1_763_200_000;
const reportsStored = 20;

/** A service with one stream, an account without limits, and a clock that stands still. */
export const openFuzzedService = async (): Promise<FuzzedService> => {
  const feedId = secondStream(1);
  const { report, signerSets } = await createSignedReports('fuzz');
  const streams: readonly Stream[] = [testStream(feedId)];
  const nowMs = (): number => (start + reportsStored) * 1_000;
  const service = await openService(streams, signerSets, nowMs, { socketsPerAccount: 60_000 });
  await service.append(Array.from({ length: reportsStored }, (_, i) => report(feedId, start + i, start + i)));
  const account = await service.addAccount(['public']);
  return { service, port: Number(new URL(service.url).port), feedId, account, nowMs };
};

/** Observations that the service collects for tests: nobody looks at them here, and they would fill the memory. */
export const forgetEvents = ({ service }: FuzzedService): void => {
  (service.events as unknown[]).length = 0;
  (service.liveEvents as unknown[]).length = 0;
};
