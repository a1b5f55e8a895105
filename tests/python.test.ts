// The client of docs/python.md, run by the machine's Python against the real API.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Credentials, openService, type Service } from './support/running-api.ts';
import { testStream } from './support/running-ingest.ts';
import { createSignedReports, secondStream } from './support/signed-reports.ts';
import { readText } from './support/source-tree.ts';

const { report, signerSets } = await createSignedReports();
const run = promisify(execFile);
const feedId = secondStream(1);
const folder = mkdtempSync(join(tmpdir(), 'sealpost-python-'));
const program = /```python\n(.*?)```/s.exec(readText('docs/python.md'))?.[1] ?? '';
const now = Math.floor(Date.now() / 1_000);
let service: Service;
let reader: Credentials;

beforeAll(async () => {
  service = await openService([testStream(feedId)], signerSets, () => Date.now());
  reader = await service.addAccount(['public']);
  await service.append([
    report(feedId, now - 7_200, now - 7_200, 5n),
    report(feedId, now - 20, now - 11, 97_012_345678901234567890n),
    report(feedId, now - 10, now - 6, -1n),
    report(feedId, now - 5, now - 1, 3_120n * 10n ** 18n + 10n ** 17n),
  ]);
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

const start = (secret: string) =>
  run('python3', [join(folder, 'prices.py'), feedId], {
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

test('python.md: a wrong secret raises HTTPError 401', async ({ skip }) => {
  if ((await python()) === undefined) skip('python3 is not installed');
  await expect(start('wrong')).rejects.toMatchObject({ stderr: expect.stringContaining('HTTP Error 401') });
});
