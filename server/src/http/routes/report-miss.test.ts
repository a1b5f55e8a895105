import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Credentials, openService, type Service } from '../../../../tests/support/running-api.ts';
import { testStream } from '../../../../tests/support/running-ingest.ts';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';

const { report, signerSets } = await createSignedReports();
const [ended, silent, aged, now] = [secondStream(1), secondStream(2), secondStream(3), 1_763_200_000];
let service: Service;
let reader: Credentials;

beforeAll(async () => {
  const decommissioned = { status: 'decommissioned', decommissionedAt: '2025-06-01T00:00:00.000000Z' } as const;
  const streams = [testStream(ended, decommissioned), testStream(silent), testStream(aged)];
  service = await openService(streams, signerSets, () => now * 1_000);
  const old = now - 31 * 86_400;
  await service.append([report(aged, old, old)]);
  reader = await service.addAccount(['public']);
});
afterAll(() => service.close());

test.each([
  ['decommissioned', ended, 'The stream was decommissioned on 2025-06-01 and has no reports.'],
  ['waiting for its first report', silent, 'The stream has no report yet.'],
  ['with reports older than retention', aged, 'The stream has no report in the last 30 days.'],
])('miss: the error for a stream %s says so', async (_, feedId, message) => {
  for (const target of [`/latest?feedID=${feedId}`, `?feedID=${feedId}&timestamp=${now}`])
    expect(await service.call(`/api/v1/reports${target}`, { as: reader })).toMatchObject({
      status: 404,
      json: { code: 'report_not_found', message, reason: 'no_reports', previous: null, next: null },
    });
});
