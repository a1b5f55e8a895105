// Stores that earlier releases wrote, opened by this one as a user does: served, read, written to, restarted, checked, backed up.
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { requireDocumented } from '../support/openapi-check.ts';
import type { Server } from '../support/real-program.ts';
import { readText } from '../support/source-tree.ts';
import { createRead, hashReport, type Read, readAnswers, readRecords } from './answers.ts';
import { createOperator } from './operator.ts';
import { readReleases } from './packed-files.ts';
import { askMirror, sendLines } from './senders.ts';
import { engines, openStoredRelease, releasedVersions, type StoredRelease } from './stored-release.ts';

const releases = readReleases();

/** The first, whose stores no later release opens. */
const first = '0.1.0';

test('upgrade: every release of CHANGELOG.md but the first left its stores in tests/formats, made by npm run formats -- VERSION', () => {
  const released = releasedVersions(readText('CHANGELOG.md')).toReversed();
  expect([first, ...releases.map(({ version }) => version)]).toEqual(released);
  const text = '# Changelog\n\n## Unreleased\n\n### Added\n\n## 0.2.0 – 2027-01-01\n\n## 0.1.0 – 2026-11-16\n';
  expect(releasedVersions(text)).toEqual(['0.2.0', '0.1.0']);
});

test('upgrade: docs/operating.md has the formats of every release', () => {
  const rows = [...readText('docs/operating.md').matchAll(/^\| (\d+\.\d+\.\d+\S*) \| \d+ \| \d+ \|$/gm)];
  expect(rows.map(([, version]) => version)).toEqual([first, ...releases.map(({ version }) => version)]);
});

/** Every answer of this release must be in the form of its OpenAPI document. */
const readDocumented = (url: string): Read =>
  createRead(url, async (request, target) => {
    const response = await fetch(request);
    await requireDocumented('GET', target, response);
    return response;
  });

type Line = { readonly feedID: string; readonly observationsTimestamp: number };

/** Every one of the later reports that the account may read, byte for byte, and the newest of each stream as its latest. */
const expectLater = async ({ url }: Server, { expected, later }: StoredRelease): Promise<void> => {
  const read = createRead(url);
  const expectReport = async (target: string, report: Line) =>
    expect(await read(`/api/v1/reports${target}`, expected.readers.all)).toEqual({ status: 200, body: { report } });
  const isReadable = ({ feedID }: Line) =>
    expected.answers[`all /api/v1/reports/latest?feedID=${feedID}`]?.status !== 401; // two are hidden
  const lines = later.map((line) => JSON.parse(line, hashReport) as Line).filter(isReadable);
  for (const line of lines) await expectReport(`?feedID=${line.feedID}&timestamp=${line.observationsTimestamp}`, line);
  const newest = new Map(lines.map((line) => [line.feedID, line]));
  for (const line of newest.values()) await expectReport(`/latest?feedID=${line.feedID}`, line);
};

/** Usage is kept for 400 days. */
const isUsageKept = (writtenAt: string): boolean => Date.now() - Date.parse(writtenAt) < 365 * 86_400_000;

const cases = releases.flatMap((release) => engines.map((engine) => ({ ...release, engine })));

describe.each(cases)('upgrade: $version on $engine', ({ folder, engine, writtenAt }) => {
  let stored: StoredRelease;
  beforeAll(async () => {
    stored = await openStoredRelease(folder, engine);
  });
  afterAll(() => stored?.remove());

  test('the commands say of streams, signers, accounts, rejected lines, usage and the audit log what those of the release said', async () => {
    const operator = stored.operate();
    const { records } = stored.expected;
    const kept = Object.entries(records).filter(([name]) => isUsageKept(writtenAt) || !name.startsWith('usage'));
    if (engine === 'postgres') expect(await operator.run(['store', 'migrate'])).toMatch(/schema|up to date/i);
    expect(await readRecords(operator)).toMatchObject(Object.fromEntries(kept));
    expect(await operator.run(['store', 'verify', '--signatures'])).toMatch(/no problem/i);
  });

  test('a server answers every request as that of the release did, and stores new reports; both also after a restart', async () => {
    const { expected, later } = stored;
    const operator = stored.operate();
    const first = await operator.serve();
    expect(await readAnswers(readDocumented(first.url), expected)).toMatchObject(expected.answers);
    expect(await askMirror(first, expected.feedIds, expected.from)).toEqual(expected.mirror);
    expect(await sendLines(first, later)).toEqual({ stored: later.length });
    await expectLater(first, stored);
    expect(await first.stop()).toMatchObject({ code: 0 });
    const second = await operator.serve('--workers', '1');
    await expectLater(second, stored);
    expect(await sendLines(second, later)).toEqual({ duplicate: later.length });
    const pages = Object.entries(expected.answers).filter(([key]) => key.startsWith('all /api/v1/reports/page'));
    for (const [key, { status, body }] of pages) {
      if (status !== 200) continue;
      const { reports } = body as { reports: readonly unknown[] };
      const read = await createRead(second.url)(key.slice('all '.length), expected.readers.all);
      expect((read.body as { reports: readonly unknown[] }).reports.slice(0, reports.length)).toEqual(reports);
    }
    expect(await second.stop()).toMatchObject({ code: 0 });
  });

  test('after that nothing is damaged, and a backup, its restore and an export have every report', async () => {
    const operator = stored.operate();
    expect(await operator.run(['store', 'verify', '--signatures'])).toMatch(/no problem/i);
    const count = async ({ runJson }: typeof operator) =>
      ((await runJson('store', 'stats')) as { reports: number }).reports;
    const reports = await count(operator);
    const { reports: before } = stored.expected.records.stats as { reports: number };
    expect(reports).toBe(before + stored.later.length);
    const [backup, restored] = [join(operator.folder, 'backup'), join(operator.folder, 'restored')];
    await operator.run(['store', 'backup', backup]);
    const copy = createOperator(operator.folder, restored, operator.keyFile);
    await copy.run(['store', 'restore', backup]);
    expect(await count(copy)).toBe(reports);
    const exported = await operator.run(['export', '--all']);
    expect(exported).toBe(await copy.run(['export', '--all']));
    expect(exported.trim().split('\n')).toHaveLength(reports);
  });
});
