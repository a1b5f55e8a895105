// Servers that are wrong in one way each: the checks of their row find it. A right server passes them all.
import { afterAll, beforeAll, describe, test } from 'vitest';
import { checkTable } from '../../../conformance/table.ts';
import { runCommand } from '../../sample-session.fixture.ts';
import { type Fault, openBrokenServer } from './broken-server.fixture.ts';
import { answerFaultTable } from './faults-of-answers.fixture.ts';
import { requestFaults } from './faults-of-requests.fixture.ts';
import { type LiveSample, openLiveSample } from './live-sample.fixture.ts';

const table: readonly Fault[] = [...requestFaults, ...answerFaultTable];
const none: Fault = { name: 'none', fails: [] };

describe('broken servers', () => {
  let sample: LiveSample;
  beforeAll(async () => {
    sample = await openLiveSample({ historySeconds: 1_300, behindSeconds: 3_600 });
  });
  afterAll(() => sample.close());

  const runChecks = async (fault: Fault, ...args: readonly string[]) => {
    const { SEALPOST_USER_ID: userId = '', SEALPOST_SECRET: secret = '' } = sample.env;
    const server = await openBrokenServer(sample.url, { userId, secret }, fault);
    try {
      const fast = ['--requests-per-second', '1000', '--slow-after', '10000', '--json'];
      const { stdout } = await runCommand(['conformance', server.url, ...fast, ...args], { env: sample.env });
      const checks: readonly { id: string; result: string }[] = JSON.parse(stdout).checks;
      return checks;
    } finally {
      await server.close();
    }
  };

  test('conformance: behind the proxy, a right server passes every check', async ({ expect }) => {
    const checks = await runChecks(none, '--strict', '--live-seconds', '4');
    expect(checks.filter(({ result }) => result !== 'passed')).toEqual([]);
    expect(checks.length).toBe(checkTable.length);
  });

  test.concurrent.for(table)('conformance: found: $name', async (fault, { expect }) => {
    const checks = await runChecks(fault, ...fault.fails.flatMap((id) => ['--only', id]), ...(fault.options ?? []));
    expect(checks.map(({ id, result }) => [id, result]).sort()).toEqual(fault.fails.map((id) => [id, 'failed']).sort());
  });
});
