// Ingest into PostgreSQL, where every look-up is a statement.
import { toReportJson } from '@sealpost/protocol';
import { afterAll, expect, test } from 'vitest';
import { openRunningIngest, testStream } from '../../../tests/support/running-ingest.ts';
import { startPostgres } from '../../../tests/support/running-postgres.ts';
import { createSignedReports, secondStream } from '../../../tests/support/signed-reports.ts';
import { openStore } from '../store/open.ts';
import { ingestNdjson } from './sources/ndjson.ts';

const server = await startPostgres();
afterAll(() => server.stop());

test('ingest on PostgreSQL: a long file that is stored already is recognised, though there is one connection to ask on', async () => {
  const { report, signerSets } = await createSignedReports();
  const [stream, t0, count] = [secondStream(1), 1_763_200_000, 1_200];
  const url = server.url('resent', 'connections=6&read_ms=20000&write_ms=20000');
  const { ingest, close } = await openRunningIngest(
    [testStream(stream)],
    signerSets,
    () => (t0 + count) * 1_000,
    {},
    1,
    () => openStore(url, 'write'),
  );
  const lines = Array.from({ length: count }, (_, i) => {
    const one = report(stream, t0 + i, t0 + i);
    return JSON.stringify(toReportJson(stream, one, `0x${Buffer.from(one.fullReport).toString('hex')}`));
  });
  async function* file() {
    yield Buffer.from(lines.join('\n'));
  }
  const send = async (): Promise<Record<string, number>> => {
    const counts: Record<string, number> = {};
    for await (const results of ingestNdjson(ingest, file()))
      for (const { result } of results) counts[result] = (counts[result] ?? 0) + 1;
    return counts;
  };
  try {
    expect(await send()).toEqual({ stored: count });
    expect(await send()).toEqual({ duplicate: count });
  } finally {
    await close();
  }
});
