import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { groupOf } from '../../../conformance/check.ts';
import { extensionTable } from '../../../conformance/extensions.ts';
import { checkTable } from '../../../conformance/table.ts';
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
    const { code, stderr, report, open, extensions } = await check(sample, '--strict');
    expect(open).toEqual([]);
    expect([code, stderr, report.ok, report.passed]).toEqual([0, '', true, checkTable.length]);
    const absent = extensions.filter(({ result }) => result !== 'present').map(({ id }) => id);
    expect(absent).toEqual(['rate-limit-headers']); // the test's account has no rate limit
  } finally {
    await sample.close();
  }
}, 60_000);

test('conformance: a server with the bare specification passes, and extensions are absent', async () => {
  const bare = await openBareServer(true);
  try {
    const signers = join(folder, 'signers.json');
    writeFileSync(signers, JSON.stringify(bare.signers));
    const { code, open, extensions } = await check(bare, '--signers', signers);
    expect(open.map(({ id, reason }) => [id, reason])).toEqual(
      ['origins.header', 'origins.open', 'origins.deliver', 'origins.unknown'].map((id) => [
        id,
        'The deployment lists no origins.',
      ]),
    );
    expect(code).toBe(0);
    expect(extensions.map(({ id, result }) => [id, result])).toEqual(extensionTable.map(({ id }) => [id, 'absent']));
  } finally {
    await bare.close();
  }
}, 60_000);

test('conformance: what the specification does not mention is skipped where it is absent', async () => {
  const bare = await openBareServer(false);
  try {
    const only = ['feeds', 'websocket', 'origins', 'signing'].flatMap((group) => ['--only', group]);
    const { code, report, open } = await check(bare, ...only);
    expect([code, open.filter(({ result }) => result !== 'skipped')]).toEqual([0, []]);
    expect([...new Set(open.map(groupOf))]).toEqual(['feeds', 'websocket', 'origins']);
    expect(report.passed).toBe(checkTable.filter((row) => groupOf(row) === 'signing').length);
    expect((await check(bare, '--only', 'feeds', '--strict')).code).toBe(1);
  } finally {
    await bare.close();
  }
}, 60_000);
