// The samples that the explorer offers to copy, run against the real API: each prints the exact price of the stream.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { codeSamples, type SampleLanguage } from '../explorer/src/ui/code-samples.ts';
import { type Credentials, openService, type Service } from './support/running-api.ts';
import { testStream } from './support/running-ingest.ts';
import { createSignedReports, secondStream } from './support/signed-reports.ts';
import { root } from './support/source-tree.ts';

const { report, signerSets } = await createSignedReports();
const run = promisify(execFile);
const feedId = secondStream(1);
const now = Math.floor(Date.now() / 1_000);
let service: Service;
let reader: Credentials;

beforeAll(async () => {
  service = await openService([testStream(feedId)], signerSets, () => Date.now());
  reader = await service.addAccount(['public']);
  await service.append([report(feedId, now - 5, now - 1, -3_120n * 10n ** 18n - 1n)]);
});
afterAll(() => service.close());

const sampleOf = (language: SampleLanguage): string => {
  const samples = codeSamples({ origin: service.url, route: 'reportLatest', query: { feedID: feedId } });
  return samples.find((sample) => sample.language === language)?.text ?? '';
};

/** Runs a program with the keys in its environment; resolves with what it printed. */
const print = async (file: string, args: readonly string[]): Promise<string> => {
  const env = { ...process.env, SEALPOST_USER_ID: reader.userId, SEALPOST_SECRET: reader.secret };
  return (await run(file, args, { cwd: root, env })).stdout;
};

test('code samples: TypeScript prints the exact price', async () => {
  const flags = ['--conditions=source', '--import', 'tsx', '--input-type=module', '-e'];
  expect(await print(process.execPath, [...flags, sampleOf('typescript')])).toBe('-3120.000000000000000001\n');
});

test('code samples: Python prints the exact price', async ({ skip }) => {
  if ((await run('python3', ['--version']).catch(() => undefined)) === undefined) skip('python3 is not installed');
  expect(await print('python3', ['-c', sampleOf('python')])).toBe('-3120.000000000000000001\n');
});

test('code samples: curl prints the report', async () => {
  const program = `${process.execPath} ${join(root, 'server/bin/sealpost.js')}`;
  const line = sampleOf('curl').replace('npx sealpost', program);
  expect(JSON.parse(await print('sh', ['-c', line]))).toMatchObject({
    report: { feedID: feedId, observationsTimestamp: now - 1 },
  });
});
