// Holds docs/protocol.md and docs/compatibility.md against the code: tables, examples, and what the real service answers.
import {
  bodies,
  candleResolutions,
  decodeFullReport,
  errorTable,
  type Field,
  fullReportBytesMax,
  limits,
  parseQuery,
  type Route,
  type RouteName,
  reportDigest,
  reportSchemas,
  routeLabel,
  routes,
  signatureOf,
  skewMaxMs,
  verificationFailures,
} from '@sealpost/protocol';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import * as Hash from 'ox/Hash';
import * as Hex from 'ox/Hex';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createOpenApi, type OpenApiResponse } from '../protocol/src/openapi.ts';
import reportVectors from '../protocol/src/vectors/reports.json' with { type: 'json' };
import signingVectors from '../protocol/src/vectors/request-signing.json' with { type: 'json' };
import { openService, type Reply, type Service } from './support/running-api.ts';
import { testStream } from './support/running-ingest.ts';
import { createSignedReports, secondStream } from './support/signed-reports.ts';
import { listFiles, readJson, readText } from './support/source-tree.ts';

const text = readText('docs/protocol.md');
const rows = Object.entries<Route>(routes) as [RouteName, Route][];
const document = createOpenApi();

const ajv = new Ajv2020({ allowUnionTypes: true });
addFormats.default(ajv);
ajv.addKeyword('components');
ajv.addSchema({ $id: 'openapi', components: document.components }, 'openapi', false, false);
const problemsOf = (body: string, value: unknown): unknown => {
  const validate = ajv.compile({ $ref: `openapi#/components/schemas/${body}` });
  return validate(value) ? null : validate.errors;
};

/** A Markdown table, its columns padded but for the last one, which is free text. */
const renderTable = (cells: readonly (readonly string[])[]): string => {
  const widths = cells[0]?.map((_, i) => Math.max(...cells.map((row) => row[i]?.length ?? 0))) ?? [];
  widths[widths.length - 1] = cells[0]?.at(-1)?.length ?? 0;
  const line = (row: readonly string[]) => `| ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`;
  const [heading = [], ...body] = cells;
  return [line(heading), line(widths.map((width) => '-'.repeat(width))), ...body.map(line)].join('\n');
};

const code = (value: string) => `\`${value}\``;
const signed = { required: 'yes', optional: 'optional', none: 'no' } as const;
const headFields = reportSchemas[2].fields.slice(0, 6);
const fieldText = ({ name, type, unit }: Field) => `${code(name)} ${type} (${unit})`;

const generated: Readonly<Record<string, string>> = {
  routes: renderTable([
    ['method', 'path', 'signed', 'answers', 'purpose'],
    ...rows.map(([, route]) => [
      route.method,
      code(routeLabel(route)),
      signed[route.auth],
      Object.keys(route.answers).join(', '),
      route.about,
    ]),
  ]),
  head: renderTable([
    ['offset', 'field', 'type', 'unit'],
    ...headFields.map(({ name, type, unit }, i) => [String(i * 32), code(name), type, unit]),
  ]),
  schemas: renderTable([
    ['version', 'title', 'bytes', 'headline', 'fields'],
    ...Object.entries(reportSchemas).map(([version, { title, headline, fields }]) => {
      const own = version === '1' ? fields : fields.slice(headFields.length);
      const list = own.map(fieldText).join(', ');
      return [
        version,
        title,
        String(fields.length * 32),
        code(headline.price),
        version === '1' ? list : `head, ${list}`,
      ];
    }),
  ]),
};

test('protocol.md: the tables of routes and schemas are those of the code', async () => {
  const renewed = text.replace(
    /(<!-- (\w+) -->\n)[\s\S]*?(<!-- \/\2 -->)/g,
    (_, open, name, close) => `${open}\n${generated[name]}\n\n${close}`,
  );
  expect([...text.matchAll(/<!-- (\w+) -->/g)].map(([, name]) => name)).toEqual(Object.keys(generated));
  const hint = 'Out of date. To write the tables again: npx vitest run tests/protocol-doc -u';
  await expect(renewed, hint).toMatchFileSnapshot('../docs/protocol.md');
});

test('protocol.md: every version but the first begins with the head', () => {
  for (const [version, { fields }] of Object.entries(reportSchemas).filter(([number]) => number !== '1'))
    expect(fields.slice(0, headFields.length), version).toEqual(headFields);
});

const sectionsOf = (heading: string): readonly (readonly [string, string])[] =>
  text.split(new RegExp(`^${heading} `, 'm')).flatMap((part, i) => {
    const end = part.search(/^#{2,3} /m);
    const [title = '', ...body] = part.slice(0, end === -1 ? undefined : end).split('\n');
    return i === 0 ? [] : [[title, body.join('\n')] as const];
  });
const routeSections = new Map(sectionsOf('###').filter(([title]) => /^(GET|HEAD) \//.test(title)));
const titleOf = (route: Route): string => `${route.method} ${routeLabel(route)}`;
const sectionOf = (route: Route): string => routeSections.get(titleOf(route)) ?? '';

test('protocol.md: the resolutions of candles are all named', () => {
  const row = /^\| resolution +\|(.*)\|$/m.exec(text)?.[1] ?? '';
  expect([...row.matchAll(/`(\d+)`/g)].map(([, seconds]) => Number(seconds))).toEqual(candleResolutions);
});

test('protocol.md: there is a section for every route and for nothing else', () => {
  expect([...routeSections.keys()]).toEqual(rows.map(([, route]) => titleOf(route)));
});

test('protocol.md: every section names every argument and asks as its route wants to be asked', () => {
  const feed = '0x00039502e417f4c0c288f33f4ea2169de9c6abddb69477c449db19d2382d211d';
  for (const [name, route] of rows) {
    const section = sectionOf(route);
    for (const argument of Object.keys(route.query)) expect(section, name).toMatch(new RegExp(`\\b${argument}\\b`));
    const [, method, target = ''] = /```http\n(\w+) (\S+)\n/.exec(section) ?? [];
    const [path, query = ''] = target.replaceAll('FEED', feed).split('?');
    expect([method, path]).toEqual([route.method, route.path]);
    expect(() => parseQuery(name, query)).not.toThrow();
  }
});

// A full report is shown by its two ends.
const jsonIn = (markdown: string): readonly unknown[] =>
  [...markdown.matchAll(/```json\n([\s\S]*?)```/g)].map(([, json]) => JSON.parse((json as string).replaceAll('…', '')));

test('protocol.md: every answer with a body has an example that the API could have given', () => {
  for (const [name, route] of rows) {
    const [, ...parts] = sectionOf(route).split(/^\*\*(?=\d{3}\*\*)/m);
    const shown = parts.flatMap((part) => jsonIn(part).map((example) => [part.slice(0, 3), example] as const));
    const expected = Object.entries(route.answers).filter(([, body]) => body !== null);
    expect(
      shown.map(([status]) => status),
      name,
    ).toEqual(expected.map(([status]) => status));
    for (const [status, example] of shown)
      expect(problemsOf(String(route.answers[Number(status)]), example), `${name} ${status}`).toBeNull();
  }
});

test('protocol.md: the other examples are an error and a live report', () => {
  const [, errors = ''] = sectionsOf('##').find(([title]) => title === 'Errors and misses') ?? [];
  const [, live = ''] = sectionsOf('##').find(([title]) => title === 'Live delivery') ?? [];
  expect(jsonIn(errors).map((example) => problemsOf('Error', example))).toEqual([null]);
  expect(jsonIn(live).map((example) => problemsOf('OneReport', example))).toEqual([null]);
});

test('protocol.md: the worked signature is the vector’s', () => {
  const vector = signingVectors.cases.find(({ name }) => name === 'report at a timestamp') ?? expect.unreachable();
  const { method, target, userId, timestampMs, secret, stringToSign, signature } = vector;
  expect(text).toContain(`\n${stringToSign}\n`);
  expect(text).toContain(`${method} ${target} HTTP/1.1\n`);
  expect(text).toContain(`X-Authorization-Signature-SHA256: ${signature}\n`);
  for (const part of [secret, userId, String(timestampMs), target]) expect(text).toContain(`\`${part}\``);
  expect(signatureOf({ method, target, userId, timestampMs }, secret)).toBe(signature);
});

const vector = reportVectors.reports.find(({ name }) => name === 'version 3') ?? expect.unreachable();
const report = decodeFullReport(vector.fullReport);

test('protocol.md: the layout of a full report is that of the vector, byte by byte', () => {
  const [L, n] = [(report.body.length - 2) / 2, report.signatures.length];
  const position = (formula: string) =>
    formula
      .replace('L', String(L))
      .replace('32n', String(32 * n))
      .split(' + ')
      .reduce((sum, term) => sum + Number(term), 0);
  const layout = [...text.matchAll(/^\| ([0-9Ln +]+?) +\| (\w+) +\| [^|]+ \| `(0x[0-9a-f]+)` +\|$/gm)];
  expect(layout).toHaveLength(13);
  let next = 0;
  for (const [, offset = '', bytes = '', word = ''] of layout) {
    expect(position(offset)).toBe(next);
    const at = 2 + next * 2;
    expect(BigInt(`0x${vector.fullReport.slice(at, at + 64)}`)).toBe(BigInt(word));
    next += position(bytes);
  }
  expect(next).toBe((vector.fullReport.length - 2) / 2);
  expect(next).toBe(320 + L + 64 * n);
});

test('protocol.md: the verified example has the vector’s hashes and signers', () => {
  const digest = Hex.fromBytes(reportDigest(report));
  expect(digest).toBe(vector.digest);
  for (const value of [Hash.keccak256(report.body), digest, ...vector.signers]) expect(text).toContain(`\`${value}\``);
  for (const reason of Object.keys(verificationFailures)) expect(text).toContain(`\`${reason}\``);
});

test('protocol.md: the bounds are those of the code', () => {
  const told = [...text.matchAll(/^\| `(\w+)` +\| (\d+) +\| [^|]+ \| (?:yes|no) +\|$/gm)];
  expect(Object.fromEntries(told.map(([, name, value]) => [name, Number(value)]))).toEqual({
    ...limits,
    skewMaxMs,
    fullReportBytesMax,
  });
});

test('protocol.md: reasons of a miss, units of fields and vectors are all there', () => {
  const [, misses = ''] = sectionsOf('##').find(([title]) => title === 'Errors and misses') ?? [];
  expect([...misses.matchAll(/^\| `(\w+)` /gm)].map(([, reason]) => reason).slice(1)).toEqual(
    bodies.MissingReport.properties.reason.enum,
  );
  const units = new Set(Object.values(reportSchemas).flatMap(({ fields }) => fields.map(({ unit }) => unit)));
  for (const unit of units) expect(text).toMatch(new RegExp(`^\\| \`${unit}\` +\\|`, 'm'));
  const files = listFiles('.json').filter((path) => path.startsWith('protocol/src/vectors/'));
  expect([...text.matchAll(/^\| `(protocol\/src\/vectors\/[\w-]+\.json)`/gm)].map(([, path]) => path).sort()).toEqual(
    files,
  );
});

test('protocol.md: every error code that it names exists', () => {
  const others = [
    ...bodies.MissingReport.properties.reason.enum,
    ...bodies.Change.properties.kind.enum,
    ...Object.keys(verificationFailures),
    ...Object.keys(routes.discovery.query),
  ];
  for (const [, name = ''] of text.matchAll(/`([a-z]+(?:_[a-z]+)+)`/g))
    expect([...Object.keys(errorTable), ...others], name).toContain(name);
});

test('protocol.md: its contents lead to its headings', () => {
  const anchors = [...text.matchAll(/^#{2,3} (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(' ', '-')
      .replace(/[^\w-]/g, ''),
  );
  for (const [, anchor] of text.matchAll(/\]\(#([\w-]+)\)/g)) expect(anchors).toContain(anchor);
});

test('compatibility.md: the SDK named is the one that tests run', () => {
  const { devDependencies } = readJson('package.json') as { devDependencies: Record<string, string> };
  const version = devDependencies['@chainlink/data-streams-sdk'];
  expect(readText('docs/compatibility.md')).toContain(`\`@chainlink/data-streams-sdk\` ${version}`);
});

const now = 1_763_200_000;
const [live, silent, unreadable] = [secondStream(1), secondStream(2), secondStream(3)];
let service: Service;

beforeAll(async () => {
  const { report: sign, signerSets } = await createSignedReports('protocol-doc');
  const streams = [testStream(live), testStream(silent), testStream(unreadable, { hidden: true })];
  const rules = { requestsPerSecond: 1_000, origins: ['001', '002'] };
  service = await openService(streams, signerSets, () => now * 1_000, rules);
  await service.append([sign(live, now - 30, now - 21), sign(live, now - 10, now - 1)]);
});
afterAll(() => service?.close());

const queries: Readonly<Record<RouteName, readonly (readonly [number, string])[]>> = {
  discovery: [
    [200, ''],
    [400, 'hidden=maybe'],
  ],
  feeds: [[200, '']],
  reportAt: [
    [200, `feedID=${live}&timestamp=${now - 5}`],
    [404, `feedID=${live}&timestamp=${now - 15}`],
    [404, `feedID=${live}&timestamp=${now + 1}`],
    [401, `feedID=${unreadable}&timestamp=${now}`],
    [400, `feedID=${live}&timestamp=1`],
  ],
  reportLatest: [
    [200, `feedID=${live}`],
    [404, `feedID=${silent}`],
  ],
  reportLatestMany: [
    [200, `feedIDs=${live}`],
    [206, `feedIDs=${live},${silent}`],
    [206, `feedIDs=${silent}&missing=true`],
    [401, `feedIDs=${live},${unreadable}`],
    [400, `feedIDs=${live}&feedID=${live}`],
    [400, 'feedIDs='],
  ],
  reportBulk: [
    [200, `feedIDs=${live}&timestamp=${now - 5}`],
    [206, `feedIDs=${live},${silent}&timestamp=${now - 5}`],
    [206, `feedIDs=${live},${silent}&timestamp=${now - 15}&missing=true`],
  ],
  reportPage: [
    [200, `feedID=${live}&startTimestamp=${now - 60}&limit=1`],
    [200, `feedID=${live}&startTimestamp=${now}`],
  ],
  reportCoverage: [[200, `feedID=${live}&from=${now - 60}&to=${now}`]],
  reportCoverageMany: [[200, `feedIDs=${live},${silent}&from=${now - 60}&to=${now}`]],
  reportCandles: [[200, `feedID=${live}&from=${now - 60}&to=${now}&resolution=60`]],
  reportCandlesMany: [
    [200, `feedIDs=${live},${silent}&from=${now - 60}&to=${now}&resolution=60`],
    [401, `feedIDs=${live},${unreadable}&from=${now - 60}&to=${now}&resolution=60`],
  ],
  // A 200 of it does not end; tests/live.test.ts reads one.
  reportStream: [
    [400, ''],
    [401, `feedIDs=${unreadable}`],
  ],
  origins: [[200, '']],
  socket: [[426, `feedIDs=${live}`]],
  socketMs: [[426, `feedIDs=${live}`]],
  time: [[200, '']],
  signers: [[200, '']],
  status: [[200, '']],
  openapi: [[200, '']],
  docs: [[200, '']],
};

const resolve = (response: OpenApiResponse | undefined): OpenApiResponse | undefined =>
  response?.$ref === undefined ? response : document.components.responses[response.$ref.split('/').at(-1) ?? ''];

const expectDescribed = (route: Route, reply: Reply): void => {
  const item = document.paths[route.path];
  const operation = route.method === 'GET' ? item?.get : item?.head;
  const response = resolve(operation?.responses[reply.status]) ?? expect.unreachable(`${route.path} ${reply.status}`);
  const schema = response.content?.['application/json']?.schema;
  const page = response.content?.['text/html'];
  if (page !== undefined) expect(reply.text).toMatch(/^<!doctype html>/);
  else if (schema === undefined) expect(reply.text).toBe('');
  else {
    const allowed = 'oneOf' in schema ? schema.oneOf : [schema];
    const problems = allowed.map(({ $ref }) => problemsOf($ref.split('/').at(-1) ?? '', reply.json));
    expect(problems, `${route.path} ${reply.status} ${reply.text}`).toContain(null);
  }
  for (const [name, { schema }] of Object.entries(document.components.headers)) {
    const value = reply.headers[name.toLowerCase()];
    if (value === undefined || name === 'Connection') continue; // which every answer has
    expect(Object.keys(response.headers ?? {}), `${route.path} ${reply.status}`).toContain(name);
    expect(ajv.validate(schema, schema.type === 'integer' ? Number(value) : value), `${name}: ${value}`).toBe(true);
  }
  expect(reply.headers).toHaveProperty('x-request-id');
};

test.each(rows)('openapi.json describes every answer of the real service: %s', async (name, route) => {
  for (const [status, query] of queries[name]) {
    const { method, path } = route;
    const reply = await service.call(query === '' ? path : `${path}?${query}`, { method });
    expect(reply.status, `${name} ${query} ${reply.text}`).toBe(status);
    expectDescribed(route, reply);
  }
});

test('openapi.json describes a 304, an anonymous catalog, and the refusal of a signature', async () => {
  const target = `${routes.reportLatest.path}?feedID=${live}`;
  const { headers } = await service.call(target);
  const again = await service.call(target, { headers: { 'If-None-Match': headers.etag } });
  expect(again.status).toBe(304);
  expectDescribed(routes.reportLatest, again);
  const anonymous = await service.call(routes.discovery.path, { as: null });
  expect(anonymous.status).toBe(200);
  expectDescribed(routes.discovery, anonymous);
  const refused = await service.call(target, { signed: '/' });
  expect(refused.status).toBe(401);
  expectDescribed(routes.reportLatest, refused);
});

test('openapi.json: the service sends every header that it describes for a success', async () => {
  for (const [name, route] of rows.filter(([, { transport, auth }]) => transport === 'http' && auth === 'required')) {
    const [status, query] = queries[name][0] ?? expect.unreachable();
    const reply = await service.call(query === '' ? route.path : `${route.path}?${query}`);
    const described = document.paths[route.path]?.get?.responses[status]?.headers ?? {};
    const always = Object.keys(described).filter(
      (header) => '$ref' in (described[header] ?? {}) && header !== 'Sealpost-Missing', // only of a damaged store
    );
    for (const header of always) expect(reply.headers, `${name} ${header}`).toHaveProperty(header.toLowerCase());
  }
});
