// The client of docs/python.md, run by the machine's Python against the real API.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createNetwork } from '@sealpost/simulator';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { undecodedBody, undecodedStream } from './support/exports/undecoded-bodies.ts';
import { type Credentials, openService, type Service } from './support/running-api.ts';
import { testStream } from './support/running-ingest.ts';
import { createSignedReports, secondStream } from './support/signed-reports.ts';
import { readText } from './support/source-tree.ts';

const { report, signerSets } = await createSignedReports();
const run = promisify(execFile);
const feedId = secondStream(1);
const layouts = ['version 14 with contractMonth as text', 'version 3 with a word more'] as const;
const unknown = layouts.map((layout) => undecodedStream(layout));
const folder = mkdtempSync(join(tmpdir(), 'sealpost-python-'));
const program = /```python\n(.*?)```/s.exec(readText('docs/python.md'))?.[1] ?? '';
const now = Math.floor(Date.now() / 1_000);
let service: Service;
let reader: Credentials;

beforeAll(async () => {
  service = await openService(
    [feedId, ...unknown].map((id) => testStream(id)),
    signerSets,
    () => Date.now(),
  );
  reader = await service.addAccount(['public']);
  await service.append([
    report(feedId, now - 7_200, now - 7_200, 5n),
    report(feedId, now - 20, now - 11, 97_012_345678901234567890n),
    report(feedId, now - 10, now - 6, -1n),
    report(feedId, now - 5, now - 1, 3_120n * 10n ** 18n + 10n ** 17n),
  ]);
  const { sign } = await createNetwork({ seed: 'tests' });
  await service.append(
    layouts.map((layout, i) => ({
      feedId: unknown[i] ?? feedId,
      validFromMs: now * 1_000,
      observationsMs: now * 1_000,
      fullReport: Buffer.from(sign(undecodedBody(layout, { validFrom: now, observations: now }), i).slice(2), 'hex'),
    })),
  );
  writeFileSync(join(folder, 'prices.py'), program);
});
afterAll(async () => {
  await service.close();
  rmSync(folder, { recursive: true, force: true });
});

const python = async () => {
  try {
    return (await run('python3', ['--version'])).stdout.trim();
  } catch {
    return undefined;
  }
};

const start = (secret: string, stream = feedId) =>
  run('python3', [join(folder, 'prices.py'), stream], {
    env: { ...process.env, SEALPOST_URL: service.url, SEALPOST_USER_ID: reader.userId, SEALPOST_SECRET: secret },
  });

test('python.md: the client has 30 lines, reads the latest price and the last hour, exactly', async ({ skip }) => {
  expect(program.split('\n').filter((line) => line.trim() !== '').length).toBeLessThanOrEqual(30);
  if ((await python()) === undefined) skip('python3 is not installed');
  const { stdout } = await start(reader.secret);
  expect(stdout.split('\n')).toEqual([
    'latest 3120.100000000000000000',
    `${now - 11} 97012.345678901234567890`,
    `${now - 6} -0.000000000000000001`,
    `${now - 1} 3120.100000000000000000`,
    '',
  ]);
});

test('python.md: a report of another schema or layout has no price, instead of a wrong one', async ({ skip }) => {
  if ((await python()) === undefined) skip('python3 is not installed');
  for (const stream of unknown)
    await expect(start(reader.secret, stream)).rejects.toMatchObject({
      stderr: expect.stringContaining(`ValueError: unknown_schema: no price is known of ${stream}`),
    });
});

test('python.md: a wrong secret raises HTTPError 401', async ({ skip }) => {
  if ((await python()) === undefined) skip('python3 is not installed');
  await expect(start('wrong')).rejects.toMatchObject({ stderr: expect.stringContaining('HTTP Error 401') });
});
