// The samples that the explorer offers to copy, run against the real API: each prints the exact price of the stream, or its live reports.
import { execFile, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { createNetwork } from '@sealpost/simulator';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { codeSamples, type SampleLanguage, type SampleRequest } from '../explorer/src/ui/code-samples.ts';
import { undecodedBody, undecodedStream } from './support/exports/undecoded-bodies.ts';
import { execArgvForModules } from './support/module-for-process.ts';
import { type Credentials, openService, type Service } from './support/running-api.ts';
import { testStream } from './support/running-ingest.ts';
import { createSignedReports, secondStream } from './support/signed-reports.ts';
import { root } from './support/source-tree.ts';

const { report, signerSets } = await createSignedReports();
const run = promisify(execFile);
const layout = 'version 3 with a word more';
const [feedId, liveId, strangeId] = [secondStream(1), secondStream(2), undecodedStream(layout)];
const now = Math.floor(Date.now() / 1_000);
let service: Service;
let reader: Credentials;

beforeAll(async () => {
  service = await openService(
    [feedId, liveId, strangeId].map((id) => testStream(id)),
    signerSets,
    () => Date.now(),
  );
  reader = await service.addAccount(['public']);
  const { sign } = await createNetwork({ seed: 'tests' });
  const strange = sign(undecodedBody(layout, { validFrom: now, observations: now }), 1);
  await service.append([
    report(feedId, now - 5, now - 1, -3_120n * 10n ** 18n - 1n),
    {
      feedId: strangeId,
      validFromMs: now * 1_000,
      observationsMs: now * 1_000,
      fullReport: Buffer.from(strange.slice(2), 'hex'),
    },
  ]);
});
afterAll(() => service.close());

type Request = Pick<SampleRequest, 'route' | 'query'>;

const latest: Request = { route: 'reportLatest', query: { feedID: feedId } };
const at: Request = { route: 'reportAt', query: { feedID: feedId, timestamp: String(now - 3) } };
const live: Request = { route: 'reportStream', query: { feedIDs: liveId } };

/** The program to run, and its arguments. */
type Command = readonly [file: string, args: readonly string[]];

const textOf = (language: SampleLanguage, request: Request): string =>
  codeSamples({ origin: service.url, ...request }).find((sample) => sample.language === language)?.text ?? '';

const commandOf: Readonly<Record<'typescript' | 'python' | 'curl', (request: Request) => Command>> = {
  typescript: (request) => {
    const flags = [...execArgvForModules, '--input-type=module', '-e'];
    return [process.execPath, [...flags, textOf('typescript', request)]];
  },
  python: (request) => ['python3', ['-c', textOf('python', request)]],
  curl: (request) => {
    const program = `${process.execPath} ${join(root, 'cli/bin/sealpost.js')}`;
    return ['sh', ['-c', textOf('curl', request).replace('sealpost', program)]];
  },
};

const hasPython = (): Promise<boolean> =>
  run('python3', ['--version']).then(
    () => true,
    () => false,
  );

/** With the keys in the environment. */
const options = () => ({
  cwd: root,
  env: { ...process.env, SEALPOST_USER_ID: reader.userId, SEALPOST_SECRET: reader.secret },
});

/** Runs a program to its end; resolves with what it printed. */
const print = async ([file, args]: Command): Promise<string> => (await run(file, args, options())).stdout;

/** The last second that has a live report. */
let last = now;

/** Runs a program that does not end, while reports arrive, until it has printed one; resolves with that line. */
const printLive = async ([file, args]: Command): Promise<string> => {
  const child = spawn(file, args, { ...options(), detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
  const timer = setInterval(() => {
    const second = Math.floor(Date.now() / 1_000);
    if (second > last) void service.append([report(liveId, last + 1, second)]);
    last = Math.max(last, second);
  }, 100);
  try {
    for await (const line of createInterface({ input: child.stdout })) if (line.includes(liveId)) return line;
    throw new Error('The program ended without a report.');
  } finally {
    clearInterval(timer);
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid); // and what it started
  }
};

const price = '-3120.000000000000000001\n';

test('code samples: TypeScript prints the exact price', async () => {
  expect(await print(commandOf.typescript(latest))).toBe(price);
  expect(await print(commandOf.typescript(at))).toBe(price);
});

test('code samples: Python prints the exact price, of now and of a time', async ({ skip }) => {
  if (!(await hasPython())) skip('python3 is not installed');
  expect(await print(commandOf.python(latest))).toBe(price);
  expect(await print(commandOf.python(at))).toBe(price);
});

test('code samples: a report in another layout has no price, instead of a wrong one', async ({ skip }) => {
  const strange: Request = { route: 'reportLatest', query: { feedID: strangeId } };
  const thrown = (text: string) => expect.objectContaining({ stderr: expect.stringContaining(text) });
  await expect(print(commandOf.typescript(strange))).rejects.toEqual(thrown("code: 'unknown_schema'"));
  if (!(await hasPython())) skip('python3 is not installed');
  await expect(print(commandOf.python(strange))).rejects.toEqual(thrown('ValueError: unknown_schema'));
});

test.each([
  ['now', latest],
  ['a time', at],
])('code samples: curl prints the report of %s', async (_, request) => {
  expect(JSON.parse(await print(commandOf.curl(request)))).toMatchObject({
    report: { feedID: feedId, observationsTimestamp: now - 1 },
  });
});

test('code samples: curl and Python print live reports as they arrive', async ({ skip }) => {
  const line = await printLive(commandOf.curl(live));
  expect(JSON.parse(line.slice('data: '.length))).toMatchObject({ feedID: liveId });
  if (!(await hasPython())) skip('python3 is not installed');
  expect(JSON.parse(await printLive(commandOf.python(live)))).toMatchObject({ feedID: liveId });
});
