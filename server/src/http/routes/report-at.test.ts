import { expect, test } from 'vitest';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { renderReport } from '../../store/format/rendered-report.ts';
import { type RenderedReport, reportTag } from '../../store/store.ts';
import type { RouteContext } from './context.ts';
import { reportAt } from './report-at.ts';

const { report } = await createSignedReports();
const feedId = secondStream(1);
const t0 = 1_763_200_000;
const [first, second] = [report(feedId, t0, t0), report(feedId, t0, t0, 2n)];
const rendered = (one: typeof first): RenderedReport => ({
  observationsMs: one.observationsMs,
  json: Buffer.from(renderReport(one), 'latin1'),
});

const contextOf = (found: () => unknown, nowMs = t0 * 1_000, ifNoneMatch?: string): RouteContext =>
  ({
    reports: {
      renderedAt: found,
      neighbours: async () => ({ previous: undefined, next: undefined }),
      latest: () => undefined,
    },
    admin: { streams: new Map() },
    ...{ reportNowMs: nowMs, retentionDays: 1, ifNoneMatch },
  }) as unknown as RouteContext; // as much of it as the route reads

const query = { feedId, timestamp: t0 };

test.each([
  ['at once', (found: unknown) => found],
  ['later', async (found: unknown) => found],
])('report at: one that the store gives %s is sent whole, under the tag of its bytes', async (_, given) => {
  const kept = [rendered(first)];
  for (const found of [kept, kept, [rendered(second)], kept]) {
    const expected = found === kept ? first : second;
    const answer = await reportAt(
      query,
      contextOf(() => given(found)),
    );
    const tag = reportTag(expected.fullReport);
    expect(answer).toMatchObject({ status: 200, ascii: true, body: `{"report":${renderReport(expected)}}`, tag });
    const context = contextOf(() => given(found), undefined, `"${tag}"`);
    expect(await reportAt(query, context)).toMatchObject({ status: 304, tag });
  }
});

test('report at: a report that was sent before is missing once it is older than retention', async () => {
  const kept = [rendered(first)];
  const now = contextOf(() => kept);
  expect((await reportAt(query, now)).status).toBe(200);
  const later = contextOf(() => kept, (t0 + 86_401) * 1_000);
  await expect(async () => reportAt(query, later)).rejects.toThrow('The stream has no report yet.');
});
