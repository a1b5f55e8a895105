// Opens a whole node on each copy of a store, asks it for everything, sends it new reports and the old ones again, stops it, and prints what
// became of it. A copy may take the process with it; whoever started it goes on with the next.
import { createHash } from 'node:crypto';
import { readFileSync, rmSync, writeSync } from 'node:fs';
import { basename } from 'node:path';
import { signRequest } from '@sealpost/protocol';
import { openNode } from '../../server/src/node/node.ts';
import { copyStore } from '../../server/src/store/copy.ts';
import { openStore } from '../../server/src/store/open.ts';
import type { Store } from '../../server/src/store/store.ts';
import { nodeSettings } from '../faults/node-settings.ts';
import type { Account } from '../faults/store-folder.ts';
import { type Outcome, repairedPrefix } from './outcome.ts';
import type { World } from './world.ts';

const [worldFile = '', ...folders] = process.argv.slice(2);
const world = JSON.parse(readFileSync(worldFile, 'utf8')) as World; // the test wrote it
const print = (line: string): void => void writeSync(1, `${line}\n`);
const pageLimit = 100;

type Answer = { readonly status: number; readonly json: unknown; readonly link: string | null };

const ask = async (url: string, target: string, { userId, secret }: Account): Promise<Answer> => {
  const headers = signRequest({ method: 'GET', target, userId, timestampMs: Date.now() }, secret);
  const response = await fetch(`${url}${target}`, { headers: headers as Record<string, string> });
  return { status: response.status, json: await response.json(), link: response.headers.get('link') } as Answer;
};

type Report = { readonly feedID: string; readonly observationsTimestamp: number; readonly fullReport: string };

/** The keys of all reports that pages bring, and of those with wrong bytes. */
const readPages = async (url: string, reader: Account) => {
  const [seen, wrong] = [new Set<string>(), [] as string[]];
  const check = (asked: string, { feedID, observationsTimestamp, fullReport }: Report): void => {
    const key = `${feedID} ${observationsTimestamp}`;
    const hash = createHash('sha256')
      .update(Buffer.from(fullReport.slice(2), 'hex'))
      .digest('hex');
    if (feedID !== asked || world.expected[key] !== hash || seen.has(key)) wrong.push(key);
    seen.add(key);
  };
  for (const feedId of world.feedIds) {
    let target: string | undefined =
      `/api/v1/reports/page?feedID=${feedId}&startTimestamp=${world.fromSecond}&limit=${pageLimit}`;
    while (target !== undefined) {
      const { status, json, link } = await ask(url, target, reader);
      if (status !== 200) break;
      for (const report of (json as { reports: readonly Report[] }).reports) check(feedId, report);
      target = /<([^>]+)>; rel="next"/.exec(link ?? '')?.[1];
    }
    const latest = await ask(url, `/api/v1/reports/latest?feedID=${feedId}`, reader);
    const report = (latest.json as { report?: Report }).report;
    if (report !== undefined && !seen.has(`${feedId} ${report.observationsTimestamp}`)) check(feedId, report);
  }
  return { seen, wrong };
};

const scan = async (store: Store): Promise<readonly string[]> => {
  const named: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const { entries, next } = await store.reports.scan(cursor, 1_000);
    named.push(...entries.flatMap(({ error }) => (error === undefined ? [] : [error.message])));
    if (next === undefined) break;
    cursor = next;
  }
  for (const { table, reason } of [...(await store.findDamage()), ...store.damage()]) named.push(`${table}: ${reason}`);
  return named;
};

/** Repairs a copy into a new store and reads all of that. */
const repairCopy = async (folder: string): Promise<NonNullable<Outcome['repaired']>> => {
  const repaired = `${folder}.repair`;
  const [damaged, store] = [await openStore(folder, 'read'), await openStore(repaired, 'write')];
  const { damaged: named } = await copyStore(damaged, store, { isRepair: true });
  await damaged.close();
  const seen = new Set<string>();
  for (const feedId of world.feedIds)
    for (const { fullReport, observationsMs } of (await store.reports.page(feedId, world.fromSecond, 10_000)).reports) {
      const key = `${feedId} ${observationsMs / 1_000}`;
      if (createHash('sha256').update(fullReport).digest('hex') === world.expected[key]) seen.add(key);
    }
  const faults = await scan(store);
  await store.close();
  rmSync(repaired, { recursive: true });
  return { missing: stored.filter((key) => !seen.has(key)), named: named.length, faults };
};

/** The keys of the reports that the store had. */
const stored = Object.keys(world.expected).filter(
  (key) => !world.later.some((line) => key.endsWith(` ${JSON.parse(line).observationsTimestamp}`)),
);

const examine = async (folder: string): Promise<Outcome> => {
  const repaired = basename(folder).startsWith(repairedPrefix) ? await repairCopy(folder) : undefined;
  const lines: string[] = [];
  const node = await openNode({
    settings: nodeSettings(folder, world.keyFile),
    version: '0.0.0',
    ingestToken: undefined,
    logTo: { write: (line) => void lines.push(line) },
  });
  const { store, ingest } = node.write;
  const statuses: number[] = [];
  for (const account of world.accounts) statuses.push((await ask(node.url, '/api/v1/feeds', account)).status);
  const reader = world.accounts[statuses.findIndex((status) => status !== 401)] as Account; // one is damaged at most
  const old = await readPages(node.url, reader);
  const found = await scan(store);
  const results = await ingest.submit(world.later, 1);
  const again = await ingest.submit(world.lines, 1);
  const after = await readPages(node.url, reader);
  const probes = await Promise.all(
    ['/livez', '/metrics'].map(async (path) => (await fetch(`${node.opsUrl}${path}`)).status),
  );
  await node.stop('test');
  return {
    ...(repaired && { repaired }),
    wrong: [...old.wrong, ...after.wrong],
    missing: stored.filter((key) => !old.seen.has(key)),
    missingAfter: Object.keys(world.expected).filter((key) => !after.seen.has(key)),
    notIngested: [...results, ...again].flatMap(({ result, code, feedID }) =>
      result === 'refused' ? [`${feedID} ${code}`] : [],
    ),
    statuses,
    probes,
    named: [...found, ...lines.filter((line) => /"event":"(?:damaged|endedUnexpectedly)"/.test(line))],
  };
};

for (const folder of folders) {
  print(`begin ${folder}`);
  const outcome = await examine(folder).catch((error: Error & { code?: string }) => ({
    refused: `${error.code ?? error.name}: ${error.message}`,
  }));
  print(`end ${JSON.stringify(outcome)}`);
}
process.exit(0);
