import { toReportJson } from '@sealpost/protocol';
import { resolveSettings } from '@sealpost/server/config/config';
import { openNode } from '@sealpost/server/node/node';
import { expect, test } from 'vitest';
import { createWorld, fetchSigned } from '../../tests/support/real-program.ts';
import { createSignedReports } from '../../tests/support/signed-reports.ts';
import { createSandboxClock } from './clock.ts';

const start = Date.parse('2031-03-13T14:30:00Z');

test('sandbox: reports go by sandbox time, requests and the log by the real clock', async () => {
  const world = await createWorld();
  const { report } = await createSignedReports();
  const clock = createSandboxClock({ startMs: start, paused: true, monotonicMs: () => performance.now() });
  const { values } = resolveSettings({ flags: {}, env: {}, file: undefined });
  const listen = { host: '127.0.0.1', port: 0 };
  const log: string[] = [];
  const node = await openNode({
    settings: {
      ...values,
      store: `lmdb:${world.store}`,
      keyFile: world.keyFile,
      network: 'testnet',
      listen,
      opsListen: listen,
      explorer: false,
      retentionDays: 1,
      workers: 0,
    },
    version: '0.0.0',
    ingestToken: undefined,
    logTo: { write: (line) => void log.push(line) },
    hooks: {
      reportNowMs: clock.nowMs,
      privateRoute: { path: '/sandbox', handle: async (_, response) => void response.end('controlled') },
    },
  });
  const line = (seconds: number): string => {
    const { fullReport, ...window } = report(world.feedId, seconds, seconds);
    return JSON.stringify(toReportJson(world.feedId, window, `0x${Buffer.from(fullReport).toString('hex')}`));
  };
  const ask = async (target: string) => (await fetchSigned(node.url, target, world)).json();
  const ops = async (path: string) => (await fetch(`${node.opsUrl}${path}`)).text();
  try {
    const now = start / 1_000;
    const codes = async (...seconds: number[]) =>
      (await node.write.ingest.submit(seconds.map(line), 1)).map(({ code }) => code);
    expect(await codes(now, now + 60, now - 2 * 86_400)).toEqual([null, 'ahead_of_clock', 'older_than_retention']);
    expect(await ask('/status.json')).toMatchObject({ ready: true, ingestLagSeconds: 0 });
    expect(await ask(`/api/v1/reports?feedID=${world.feedId}&timestamp=${now}`)).toMatchObject({
      report: { observationsTimestamp: now },
    });
    const old = Math.floor(Date.now() / 1_000);
    expect(await ask(`/api/v1/reports?feedID=${world.feedId}&timestamp=${old}`)).toMatchObject({
      code: 'timestamp_out_of_bounds',
    });
    clock.step(120_000);
    expect(await ops('/readyz')).toContain('ingest: the newest report is 120 s old');
    expect(await codes(now + 60)).toEqual([null]);
    const { serverTimeMs } = (await ask('/time')) as { serverTimeMs: number };
    expect(Math.abs(serverTimeMs - Date.now())).toBeLessThan(600_000);
    expect(log[0]).toContain(`"time":"${new Date().getUTCFullYear()}-`);
    expect(await ops('/sandbox/anything')).toBe('controlled');
    expect((await fetch(`${node.url}/sandbox`)).status).toBe(404);
  } finally {
    await node.stop('the test is over');
    world.remove();
  }
});
