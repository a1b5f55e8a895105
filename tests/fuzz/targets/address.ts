// What the explorer reads from a link or finds in the browser's storage, where anybody may have put it. The first byte chooses which.
import assert from 'node:assert/strict';
import type { CatalogEntry } from '@sealpost/protocol';
import { toCatalogEntry } from '@sealpost/protocol';
import { createCatalog } from '@sealpost/simulator';
import { readAlertAddress } from '../../../explorer/src/alerts/alert-address.ts';
import { columns } from '../../../explorer/src/catalog/columns.ts';
import {
  activeFilters,
  filterValuesOf,
  readSelection,
  selectStreams,
  toSearchable,
  withoutFilters,
} from '../../../explorer/src/catalog/filter.ts';
import { orderProblem, readOrder, sortStreams, toggleOrder } from '../../../explorer/src/catalog/sort.ts';
import { readAddressMs } from '../../../explorer/src/report/neighbors.ts';
import { parseLevel, parsePercent, parseStored, ruleText, toStored } from '../../../explorer/src/state/alerts/rules.ts';
import { explainUnknownPath, parseRoute, reportHref, streamHref } from '../../../explorer/src/state/router.ts';
import {
  availabilityProblems,
  readAvailabilityOrder,
  searchStreams,
  writeAvailabilityOrder,
} from '../../../explorer/src/status/availability.ts';
import {
  panView,
  parseView,
  viewProblems,
  windowOf,
  writeView,
  zoomView,
} from '../../../explorer/src/stream/chart/chart-view.ts';
import {
  dayProblems,
  edgeOf,
  readDayChoice,
  writeDayChoice,
} from '../../../explorer/src/stream/reports/day-address.ts';
import { parseTime, toAddressTime } from '../../../explorer/src/ui/price-at/time-input.ts';
import { requireSame, shapeOf, type Target } from '../target.ts';

const nowMs = 1_763_200_000_000;
const entries: readonly CatalogEntry[] = createCatalog('testnet').map((stream) => toCatalogEntry(stream));
const { feedId } = entries[0] as CatalogEntry;
const selectable = { streams: entries.map(toSearchable), hidden: new Set([feedId]), watchlist: new Set([feedId]) };
const values = filterValuesOf(entries);

/** What is shown does not grow with what was given. */
const requireShort = (texts: readonly string[]): void => {
  for (const text of texts) assert.ok(text.length < 500, 'a text repeats the whole input');
};

const runPath = (path: string): string => {
  const route = parseRoute(path);
  if (route.page === 'stream') assert.equal(path.toLowerCase(), streamHref(route.feedId), 'another stream');
  if (route.page === 'report')
    requireSame(parseRoute(reportHref(route.feedId, route.timestamp)), route, 'a permalink is another report');
  if (route.page !== 'unknown') return route.page;
  const { text, href } = explainUnknownPath(path);
  requireShort([text]);
  if (href !== undefined)
    assert.notEqual(parseRoute(new URL(href, 'http://a').pathname).page, 'unknown', 'leads nowhere');
  return `unknown ${text.split('”').at(-1)} ${href === undefined}`;
};

const runFilters = (query: URLSearchParams): string => {
  const wanted = readSelection(query);
  const rows = selectStreams(selectable, wanted);
  requireSame(
    sortStreams(rows, readOrder(query), { latest: () => undefined, day: () => undefined }).length,
    rows.length,
    'rows are lost',
  );
  let [left, chips] = [query, activeFilters(query, values)];
  for (let clicks = chips.length; clicks > 0 && chips[0] !== undefined; clicks--) {
    left = chips[0].without;
    const next = activeFilters(left, values);
    assert.ok(next.length < chips.length, 'a filter stays when it is removed');
    chips = next;
  }
  requireSame(activeFilters(withoutFilters(query), values), [], 'a filter stays when all are removed');
  const plain = readSelection(withoutFilters(query));
  requireSame({ ...plain.filter }, {}, 'a filter holds when all are removed');
  requireSame(
    Object.values(readSelection(left).filter).every((value) => value === undefined || value === false),
    true,
    'a filter that is on is not shown',
  );
  requireShort(wanted.problems.map(({ text }) => text));
  return `${Math.min(rows.length, 2)} rows ${wanted.problems.map(({ name }) => name)} ${Object.keys(wanted.filter)}`;
};

const runOrders = (query: URLSearchParams): string => {
  const order = readOrder(query);
  const problem = orderProblem(query);
  requireShort([problem ?? '']);
  requireSame(
    readOrder(toggleOrder(query, order.column)),
    { ...order, descending: !order.descending },
    'not turned around',
  );
  const availability = readAvailabilityOrder(query.get('sort'));
  requireSame(readAvailabilityOrder(writeAvailabilityOrder(availability)), availability, 'another order');
  requireShort(availabilityProblems(query, 3).map(({ text }) => text));
  searchStreams(entries, query.get('q') ?? '');
  return `${order.column} ${order.descending} ${problem === undefined} ${availability.column}`;
};

const runChart = (query: URLSearchParams): string => {
  const view = parseView(query);
  const now = nowMs / 1_000;
  requireSame(parseView(writeView(query, view)), view, 'a view is another one in its link');
  for (const next of [
    view,
    panView(view, -3_600, now),
    panView(view, 3_600, now),
    zoomView(view, 0.5, now),
    zoomView(view, 2, now),
  ]) {
    const { from, to } = windowOf(next, now);
    assert.ok(from >= 0 && from < to && to <= 2 ** 32 - 1, `a chart from ${from} to ${to}`);
  }
  const problems = viewProblems(query, new Set([feedId]));
  requireShort(problems.map(({ text }) => text));
  return `${view.kind} ${view.end === undefined} ${view.compare === undefined} ${problems.map(({ name }) => name)}`;
};

const runDay = (query: URLSearchParams): string => {
  const choice = readDayChoice(query);
  const problems = dayProblems(query);
  requireShort(problems.map(({ text }) => text));
  if (choice !== undefined) {
    requireSame(readDayChoice(writeDayChoice(query, choice)), choice, 'a day is another one in its link');
    const { second } = edgeOf(choice);
    assert.ok(second >= choice.day && second < choice.day + 86_400, 'a time outside of its day');
  }
  return `${choice?.edge?.side} ${choice?.order} ${problems.map(({ name }) => name)}`;
};

const runQuery = (text: string): string => {
  const query = new URLSearchParams(text);
  const alert = readAlertAddress(query);
  requireShort(alert.problems.map(({ text: problem }) => problem));
  if (alert.level !== '') assert.notEqual(parseLevel(alert.level), undefined);
  const report = readAddressMs(feedId, 1_763_200_000, query.get('ms'));
  requireShort([report.problem ?? '']);
  const read = [runFilters(query), runOrders(query), runChart(query), runDay(query)];
  return [...read, alert.feedId !== '', alert.level !== '', report.problem === undefined].join(' / ');
};

const runTime = (text: string): string => {
  const read = parseTime(text, 'utc', nowMs);
  if (read.problem !== undefined) {
    requireShort([read.problem]);
    return shapeOf(read.problem.replace(/“.*”/s, '“…”'));
  }
  assert.ok(
    Number.isInteger(read.seconds) && read.seconds >= 0 && read.seconds <= 2 ** 32 - 1,
    `second ${read.seconds}`,
  );
  requireSame(
    parseTime(toAddressTime(read.seconds), 'local', 0).seconds,
    read.seconds,
    'a time is another one in its link',
  );
  return read.form;
};

const runLevel = (text: string): string => {
  const [level, percent] = [parseLevel(text), parsePercent(text)];
  if (level !== undefined && percent !== undefined)
    assert.equal(percent * 100n, level, 'a percentage is another ratio');
  return `${level === undefined} ${percent === undefined}`;
};

const runStored = (text: string): string => {
  let stored: unknown;
  try {
    stored = JSON.parse(text);
  } catch {
    return 'not JSON';
  }
  const kept = parseStored(stored);
  requireSame(parseStored(JSON.parse(JSON.stringify(toStored(kept)))), kept, 'alerts are others once they were stored');
  for (const { rule } of kept.alerts) ruleText(rule);
  return `${Math.min(kept.alerts.length, 3)} ${[...new Set(kept.alerts.map(({ rule }) => rule.kind))]} ${kept.history.length > 0}`;
};

const runners: Readonly<Record<string, (text: string) => string>> = {
  p: runPath,
  q: runQuery,
  t: runTime,
  l: runLevel,
  s: runStored,
};

const alert = (rule: object): object => ({ id: 'a', feedId, rule, isPaused: false, isArmed: true, lastMs: 1 });
const storedAlerts = {
  alerts: [
    alert({ kind: 'price', direction: 'above', level: '64120.55', repeats: true }),
    alert({ kind: 'stale', intervals: 10 }),
    alert({ kind: 'unverified' }),
  ],
  history: [{ seq: 1, feedId, text: 'Price rose', atMs: nowMs }],
};

const seeds = [
  ...['/', '/alerts', '/docs', '/status', streamHref(feedId), reportHref(feedId, 1_763_200_000)].map(
    (path) => `p${path}`,
  ),
  ...[`p${streamHref(feedId)}/at/1763200000000`, `p${streamHref(feedId)}/at/2026-11-15T09%3A28%3A17Z`, 'p/streams/x'],
  'qstatus=live,testing&asset_class=Crypto&q=btc+usd&sort=-price&watchlist=true&hidden=true',
  'qcreated_after=2025-01-31&decommissioned_before=2026-02-28&base_asset=ETH&sort=pair',
  `qrange=90s&kind=line&compare=${feedId}&ms=1763200000123`,
  'qview=1763190000-1763193600&day=2026-11-15&before=09:28:17&order=oldest',
  `qday=2026-11-15&after=09:28&sort=-lag&page=2&feed=${feedId}&level=64,120.55`,
  ...['t2026-11-15 09:28:17', 't2026-11-15T10:28:17+01:00', 't1794734897', 't1794734897000', 't-2h30m', 't2026-11-15'],
  ...['l64,120.55', 'l-0.000000000000000001', 'l5.25%'],
  `s${JSON.stringify(storedAlerts)}`,
];

export const openAddress = async (): Promise<Target> => ({
  seeds: seeds.map((text) => Buffer.from(text)),
  words: [
    ...Object.keys(columns),
    ...['&', '=', ',', '+', '%', '%2C', '%zz', '-', '−', '/at/', '/streams/', 'true', 'TRUE', 'false', 'null', feedId],
    ...[
      '0-1',
      '9999999999-9999999999',
      '00000000s',
      '2025-02-29',
      '0000-01-01',
      '23:59:60',
      'Z',
      'UTC',
      '-00:00',
      '999999999w',
    ],
  ],
  inputBytesMax: 8_192,
  run: (input) => runners[input.subarray(0, 1).toString()]?.(input.subarray(1).toString()) ?? 'nothing',
});
