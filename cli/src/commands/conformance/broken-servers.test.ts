// Servers that are wrong in one way each: the checks of their row find it. A right server passes them all.

import { checkTable } from '@sealpost/conformance/table';
import { dateFilters } from '@sealpost/protocol';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { runCommand } from '../../sample-session.fixture.ts';
import { type Fault, openBrokenServer } from './broken-server.fixture.ts';
import { answerFaultTable } from './faults-of-answers.fixture.ts';
import { argumentOf, on, paths, refuse, requestFaults, rewrite } from './faults-of-requests.fixture.ts';
import { type LiveSample, openLiveSample, sampleFeedIds } from './live-sample.fixture.ts';

const table: readonly Fault[] = [...requestFaults, ...answerFaultTable];

const dates = Object.keys(dateFilters).map((name) => name.replaceAll('_', '-'));

/** Servers that are right, if not as most are: none of these checks fails. */
const harmless: readonly (Omit<Fault, 'fails'> & {
  readonly only: readonly string[];
  readonly skipped: readonly string[];
})[] = [
  {
    name: 'has only the fields of the specification',
    only: ['discovery', 'feeds', 'latest', 'bulk', 'reports'],
    skipped: ['asset-class', 'feed-type', 'attribute-type', 'network-type', ...dates].map((id) => `discovery.${id}`),
    answer: on(paths.discovery, ({ feeds }) => ({
      feeds: feeds.map(({ feedId, baseAsset, quoteAsset, status }: Record<string, string>) => {
        return { feedId, baseAsset, quoteAsset, status };
      }),
    })),
  },
  {
    name: 'has pages of at most 50 reports, and bulk of at most 2 streams',
    only: ['signing', 'latest', 'bulk', 'page', 'reports'],
    skipped: ['page.same-start'],
    request: refuse(400, (request) => {
      const isLarge = paths.page.test(request.target) && Number(argumentOf(request, 'limit')) > 50;
      return isLarge || (paths.bulk.test(request.target) && `${argumentOf(request, 'feedIDs')}`.split(',').length > 2);
    }),
  },
  {
    name: 'gives at most 50 reports, whatever the limit',
    only: ['page'],
    skipped: [],
    request: (request, world) =>
      paths.page.test(request.target) && Number(argumentOf(request, 'limit')) > 50
        ? rewrite(request, world, (query) => query.set('limit', '50'))
        : undefined,
  },
  {
    name: 'keeps reports for ten minutes',
    only: ['at', 'bulk', 'page'],
    skipped: [],
    request: refuse(400, (request, { newestSecond }) => {
      const second = Number(argumentOf(request, 'timestamp') ?? argumentOf(request, 'startTimestamp') ?? newestSecond);
      return paths.reports.test(request.target) && second < newestSecond - 600;
    }),
  },
  {
    name: 'lists streams from a cache',
    only: ['signing', 'clock', 'discovery'],
    skipped: [],
    answer: ({ headers }, request) => {
      if (!paths.discovery.test(request.target) || request.headers.authorization !== undefined) return;
      Object.assign(headers, { date: new Date(Date.now() - 200_000).toUTCString(), age: '200' });
    },
  },
];

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
    const checks = await runChecks({ name: 'none', fails: [] }, '--strict', '--live-seconds', '4');
    expect(checks.filter(({ result }) => result !== 'passed')).toEqual([]);
    expect(checks.length).toBe(checkTable.length);
  });

  test.concurrent.for(harmless)('conformance: no check fails on a server that $name', async (server, { expect }) => {
    const { only, skipped } = server;
    const args = only.flatMap((group) => ['--only', group]);
    const checks = await runChecks({ ...server, fails: [] }, '--live-seconds', '4', ...args);
    expect(checks.filter(({ result }) => result === 'failed')).toEqual([]);
    expect(checks.filter(({ result }) => result === 'skipped').map(({ id }) => id)).toEqual(skipped);
  });

  test.concurrent('conformance: what a slow server does not show about its clock is skipped', async ({ expect }) => {
    const answer = () => new Promise<void>((resolve) => void setTimeout(resolve, 600));
    const args = ['--feed', sampleFeedIds.btc, '--only', 'clock.future', '--only', 'clock.behind'];
    const checks = await runChecks({ name: 'slow', fails: [], answer }, ...args);
    expect(checks.filter(({ result }) => result === 'failed')).toEqual([]);
  });

  test.concurrent.for(table)('conformance: found: $name', async (fault, { expect }) => {
    const checks = await runChecks(fault, ...fault.fails.flatMap((id) => ['--only', id]), ...(fault.options ?? []));
    expect(checks.map(({ id, result }) => [id, result]).sort()).toEqual(fault.fails.map((id) => [id, 'failed']).sort());
  });
});
