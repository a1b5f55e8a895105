// Deployments to check: a node, a server that is not Sealpost, and a node with every fault of the sandbox.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { groupOf } from '@sealpost/conformance/check';
import { extensionTable } from '@sealpost/conformance/extensions';
import { checkTable } from '@sealpost/conformance/table';
import { btc, eth, type FaultedNode, link, openFaultedNode } from '@sealpost/sandbox/faults/faulted-node.fixture';
import { faultKindNames } from '@sealpost/sandbox/faults/kinds';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { readText } from '../../../../tests/support/source-tree.ts';
import { runCommand } from '../../sample-session.fixture.ts';
import { openBareServer } from './bare-server.fixture.ts';
import { openLiveSample } from './live-sample.fixture.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-conformance-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Listed = { readonly id: string; readonly result: string; readonly reason?: string };
type Deployment = { readonly url: string; readonly env: NodeJS.ProcessEnv };

const check = async ({ url, env }: Deployment, ...args: readonly string[]) => {
  const fast = ['--requests-per-second', '1000', '--slow-after', '10000'];
  const ran = await runCommand(['conformance', url, ...fast, '--json', ...args], { env });
  expect(`${ran.stdout}${ran.stderr}`).not.toContain(env.SEALPOST_SECRET);
  const report = JSON.parse(ran.stdout);
  const checks: readonly Listed[] = report.checks;
  const extensions: readonly Listed[] = report.extensions;
  return { ...ran, report, extensions, open: checks.filter(({ result }) => result !== 'passed') };
};

test('conformance: a node passes every check, and none is skipped', async () => {
  const sample = await openLiveSample();
  try {
    const { code, stderr, report, open, extensions } = await check(sample, '--strict', '--live-seconds', '4');
    expect(open).toEqual([]);
    expect([code, stderr, report.ok, report.passed]).toEqual([0, '', true, checkTable.length]);
    const absent = extensions.filter(({ result }) => result !== 'present').map(({ id }) => id);
    expect(absent).toEqual(['rate-limit-headers']); // the test's account has no rate limit
  } finally {
    await sample.close();
  }
});

test('conformance: a server with the bare specification passes, and extensions are absent', async () => {
  const bare = await openBareServer(true);
  try {
    const signers = join(folder, 'signers.json');
    writeFileSync(signers, JSON.stringify(bare.signers));
    const { code, open, extensions } = await check(bare, '--signers', signers, '--live-seconds', '4');
    expect(open.map(({ id, reason }) => [id, reason])).toEqual(
      ['origins.header', 'origins.open', 'origins.deliver', 'origins.complete', 'origins.unknown'].map((id) => [
        id,
        'The deployment lists no origins.',
      ]),
    );
    expect(code).toBe(0);
    expect(extensions.map(({ id, result }) => [id, result])).toEqual(extensionTable.map(({ id }) => [id, 'absent']));
  } finally {
    await bare.close();
  }
});

test('conformance: what the specification does not mention is skipped where it is absent', async () => {
  const bare = await openBareServer(false);
  try {
    const only = ['feeds', 'websocket', 'origins', 'signing'].flatMap((group) => ['--only', group]);
    const { code, report, open } = await check(bare, ...only);
    expect([code, open.filter(({ result }) => result !== 'skipped')]).toEqual([0, []]);
    expect([...new Set(open.map(groupOf))]).toEqual(['feeds', 'websocket', 'origins']);
    expect(report.passed).toBe(checkTable.filter((row) => groupOf(row) === 'signing').length);
    expect((await check(bare, '--only', 'feeds', '--strict')).code).toBe(1);
    const junit = join(folder, 'unread.xml');
    const args = ['conformance', bare.url, '--only', 'feeds', '--strict', '--junit', junit];
    const unread = await runCommand(args, { env: bare.env, isUnread: true });
    expect([unread.code, readFileSync(junit, 'utf8').includes('<skipped')]).toEqual([1, true]);
  } finally {
    await bare.close();
  }
});

type Row = { readonly fault: string; readonly id: string; readonly options: readonly string[] };

const table = readText('docs/conformance.md').split('<!-- faults -->')[1] ?? '';
const rows: readonly Row[] = [...table.matchAll(/^\| `([^`]+)` +\| `([^`]+)` +\| (?:`([^`]*)`)? *\|/gm)].map(
  ([, fault = '', id = '', options = '']) => ({ fault, id, options: options.split(' ').filter(Boolean) }),
);

describe('with faults', () => {
  let node: FaultedNode;
  let feeding: NodeJS.Timeout;
  let appended: Promise<void> = Promise.resolve();

  /** The next second of sandbox time, with a report of each stream. */
  const push = (): Promise<void> => {
    appended = appended.then(async () => {
      node.clock.ms += 1_000;
      const second = node.clock.ms / 1_000 - 1;
      await node.append(...[eth, btc, link].map((feedId) => node.signed.report(feedId, second, second)));
    });
    return appended;
  };
  const pushSeveral = async (): Promise<void> => {
    for (let i = 0; i < 8; i += 1) await push();
  };

  beforeAll(async () => {
    node = await openFaultedNode({ origins: '001,002' });
    await pushSeveral();
    feeding = setInterval(push, 300);
  });
  afterEach(() => node.faults.clear());
  afterAll(async () => {
    clearInterval(feeding);
    await appended;
    await node.stop();
  });

  /** The results of these checks only. */
  const checkFaulted = async (only: readonly string[], ...options: readonly string[]) => {
    const { userId, secret } = node.reader;
    const env = { SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret };
    const { code, report } = await check({ url: node.url, env }, ...only.flatMap((id) => ['--only', id]), ...options);
    return { code, results: report.checks.map(({ id, result }: Listed) => [id, result]) };
  };

  test('conformance: the document has a row for every fault of the sandbox, and no other', () => {
    const kinds = rows.map(({ fault }) => fault.split(/[=,]/, 1)[0]);
    expect([...new Set(kinds)].sort()).toEqual([...faultKindNames].sort());
  });

  test('conformance: without faults these checks pass', async () => {
    const ids = [...new Set(rows.map(({ id }) => id))];
    const { code, results } = await checkFaulted(ids, '--slow-after', '5000', '--live-seconds', '3');
    expect(results.filter(([, result]: readonly string[]) => result !== 'passed')).toEqual([]);
    expect([code, results.length]).toEqual([0, ids.length]);
  });

  test.each(rows)(
    'conformance: $fault fails $id',
    async ({ fault, id, options }) => {
      node.faults.add(fault.replace('ETH/USD', eth));
      await pushSeveral();
      const { code, results } = await checkFaulted([id], ...options);
      expect(results).toEqual([[id, 'failed']]);
      expect(code).toBe(fault === 'reset' || fault.startsWith('truncate') ? 3 : 1);
    },
    30_000,
  );
});
