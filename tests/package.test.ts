// Packs every package, installs the tarballs together in an empty project, and uses them as a stranger would: with types.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isFull } from './support/full-count.ts';
import { readJson, readText, root, workspaces } from './support/source-tree.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-package-'));
const tarballs = join(folder, 'tarballs');
const stranger = join(folder, 'stranger');
/** Folder → name of the packages that are published; the explorer goes out as files of the server's. */
const published = new Map([...workspaces()].filter(([folder]) => readJson(`${folder}/package.json`).private !== true));
const run = (command: string, args: readonly string[], cwd = stranger): string =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

const tarballOf = (name: string): string =>
  join(tarballs, `${name.replace('@', '').replace('/', '-')}-${readJson('client/package.json').version}.tgz`);

/** Installs tarballs in a new project. No package may need its install script: people, and this project, switch them off (D108). */
const install = (project: string, names: readonly string[]): void => {
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'stranger', private: true, type: 'module' }));
  const options = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'];
  run('npm', ['install', ...options, ...names.map(tarballOf)], project);
};

let packed = '';

beforeAll(() => {
  mkdirSync(tarballs);
  for (const name of ['sealpost-client-0.0.9.tgz', 'notes.txt']) writeFileSync(join(tarballs, name), '');
  packed = run(process.execPath, [join(root, 'packaging/pack.mjs'), tarballs, '--built'], root);
  install(stranger, [...published.values()]);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('package: pack replaces earlier tarballs, touches nothing else, and says how to install what it packed', () => {
  expect(
    readdirSync(tarballs)
      .map((name) => join(tarballs, name))
      .sort(),
  ).toEqual([join(tarballs, 'notes.txt'), ...[...published.values()].map(tarballOf)].sort());
  expect(packed).toContain(`Packed ${published.size} packages into ${tarballs}.`);
  expect(packed).toMatch(/^ {2}npm install -g (?:\S+\.tgz ?){7}$/m);
  expect(packed).toMatch(/^ {2}npm install --save-dev (?:\S+\.tgz ?){5}$/m);
});

/** Every file below a folder, relative to it. */
const filesBelow = (place: string): readonly string[] =>
  readdirSync(place, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(place.length + 1));

/** A package and all that it depends on, as installed. */
const closureOf = (name: string, found = new Set<string>()): ReadonlySet<string> => {
  found.add(name);
  const manifest = JSON.parse(readFileSync(join(stranger, 'node_modules', name, 'package.json'), 'utf8'));
  const next = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies });
  for (const one of next) if (!found.has(one)) closureOf(one, found);
  return found;
};

test('package: the client installs 5 packages and at most 5 MB', () => {
  const installed = [...closureOf('@sealpost/client')].sort();
  expect(installed).toEqual(['@noble/curves', '@noble/hashes', '@sealpost/client', '@sealpost/protocol', 'ws']);
  const places = installed.map((name) => join(stranger, 'node_modules', name));
  const files = places.flatMap((place) => filesBelow(place).map((path) => join(place, path)));
  expect(files.filter((path) => /node_modules\/.*node_modules\//.test(path))).toEqual([]);
  const bytes = files.reduce((sum, path) => sum + statSync(path).size, 0);
  expect(bytes).toBeGreaterThan(1_000_000);
  expect(bytes).toBeLessThan(5_000_000);
});

test('package: what is installed besides them has the versions of the lock file', () => {
  const { packages } = readJson('package-lock.json') as { packages: Record<string, { readonly version?: string }> };
  const locked = Object.entries(packages).map(
    ([path, { version }]) => `${path.replace(/^.*node_modules\//, '')} ${version}`,
  );
  const place = join(stranger, 'node_modules');
  const manifests = filesBelow(place).filter((path) =>
    /^(.*\/node_modules\/)?(@[^/]+\/)?[^/]+\/package\.json$/.test(path),
  );
  const installed = manifests
    .map((path) => JSON.parse(readFileSync(join(place, path), 'utf8')))
    .filter(({ name, version }) => version !== undefined && ![...published.values()].includes(name));
  expect(installed.length).toBeGreaterThan(40);
  expect(installed.map(({ name, version }) => `${name} ${version}`).filter((one) => !locked.includes(one))).toEqual([]);
});

test('package: a stranger imports them and the values come out', () => {
  const script = `
    import { parseFeedId, schemaVersionOf } from '@sealpost/protocol';
    import { signRequest } from '@sealpost/protocol/request-signing';
    import vectors from '@sealpost/protocol/vectors/reports.json' with { type: 'json' };
    import { createClient, decode } from '@sealpost/client';
    import { verifyCalldata } from '@sealpost/client/onchain';
    import { createNetwork, generateHistory } from '@sealpost/simulator';
    import { openStore } from '@sealpost/server';
    import { startSandbox } from '@sealpost/sandbox';
    createClient({ baseUrl: 'http://127.0.0.1:7401' });
    decode(vectors.reports[0].fullReport);
    verifyCalldata(vectors.reports[0].fullReport);
    const version = schemaVersionOf(parseFeedId('0x0003' + '0'.repeat(60)));
    const network = await createNetwork({ seed: 'stranger' });
    const headers = signRequest({ method: 'GET', target: '/', userId: 'u', timestampMs: 1 }, 's');
    const store = await openStore('./a-store', 'write'); // its writer is a thread, and so are the simulator's signers
    await store.close();
    const sandbox = await startSandbox({ streams: ['ETH/USD'] });
    const pushed = decode(await sandbox.push('ETH/USD', '4200.55')).priceText === decode((await sandbox.client.latest('ETH/USD')).report).priceText;
    await sandbox.close();
    for await (const reports of generateHistory({ seed: 's', from: 1_763_200_000, to: 1_763_200_001, workers: 1 })) reports.at(0);
    console.log(JSON.stringify([version, vectors.reports.length, network.signerSet.addresses.length, Object.keys(headers).length, pushed]));`;
  expect(JSON.parse(run('node', ['--no-warnings', '--input-type=module', '--eval', script]))).toEqual([
    3,
    17,
    4,
    3,
    true,
  ]);
});

test('package: require() gives the same classes as import', () => {
  const script = `
    const { createClient, decode, SealpostError } = require('@sealpost/client');
    const { verifyCalldata } = require('@sealpost/client/onchain');
    const { parseFeedId } = require('@sealpost/protocol');
    const { signRequest } = require('@sealpost/protocol/request-signing');
    const { reports } = require('@sealpost/protocol/vectors/reports.json');
    const { createNetwork } = require('@sealpost/simulator');
    const { openStore } = require('@sealpost/server');
    const { startSandbox } = require('@sealpost/sandbox');
    decode(reports[0].fullReport);
    const types = [createClient, verifyCalldata, parseFeedId, signRequest, createNetwork, openStore, startSandbox].map((value) => typeof value);
    import('@sealpost/client').then((module) => console.log(JSON.stringify([new Set(types).size, types[0], module.SealpostError === SealpostError])));`;
  writeFileSync(join(stranger, 'required.cjs'), script);
  expect(JSON.parse(run('node', ['required.cjs']))).toEqual([1, 'function', true]);
});

test('package: where Node cannot require() an ES module, the error says what to do', () => {
  writeFileSync(
    join(stranger, 'old.cjs'),
    "try { require('@sealpost/client'); } catch ({ message }) { console.log(message); }",
  );
  const { engines } = readJson('client/package.json') as { engines: { node: string } };
  expect(run('node', ['--no-experimental-require-module', 'old.cjs'])).toBe(
    `@sealpost/client is an ES module, which require() loads on Node ${engines.node}. On older releases, use: await import('@sealpost/client'). In jest, use that too, and start it with NODE_OPTIONS=--experimental-vm-modules.\n`,
  );
});

/** Compiles a stranger's files in strict mode, the shipped types included. */
const compile = (
  name: string,
  files: Readonly<Record<string, string>>,
  types: readonly string[],
  lib: readonly string[] = ['ES2023'],
): void => {
  const place = join(stranger, name);
  mkdirSync(place);
  const compilerOptions = {
    strict: true,
    noEmit: true,
    module: 'NodeNext',
    target: 'ES2023',
    lib,
    types,
    typeRoots: [join(root, 'node_modules/@types')],
    skipLibCheck: false,
  };
  writeFileSync(join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: Object.keys(files) }));
  writeFileSync(join(place, 'package.json'), JSON.stringify({ type: 'module' }));
  for (const [file, source] of Object.entries(files)) writeFileSync(join(place, file), source);
  run(join(root, 'node_modules/.bin/tsc'), ['-p', place]);
};

test('package: the protocol’s types need neither Node nor a browser, and a wrong use does not compile', () => {
  compile(
    'anywhere',
    {
      'stranger.ts': `import { decodeFullReport, decodeReportBody, type FeedId, parseFeedId } from '@sealpost/protocol';
     const body = decodeReportBody(decodeFullReport('0x').body);
     export const price: bigint | undefined = body.version === 3 ? body.price : undefined;
     export const feedId: FeedId = parseFeedId('x');
     // @ts-expect-error a raw string is no feed id
     export const raw: FeedId = '0x00';
     // @ts-expect-error version 2 has no bid
     export const bid = body.version === 2 ? body.bid : 0n;`,
    },
    [],
  );
});

/** With a browser's types alone: one run of the compiler for all. */
const inBrowser: Readonly<Record<string, string>> = {
  // A wrong use does not compile.
  'client.ts': `import { createClient, decode, SealpostError, verify, withFeeToken } from '@sealpost/client';
     const client = createClient({ baseUrl: 'https://api.example.org' });
     const { report, details } = await client.latest('0x00');
     export const price: bigint = decode(report).price;
     export const left: number | undefined = details.rateLimit?.remaining;
     const verdict = verify(report, (await client.signers()).signers);
     export const why: string = verdict.ok ? '' : verdict.message;
     export const [payload, parameter]: readonly [string, string] = withFeeToken(report, '0x00');
     export const advice = (error: unknown) => (error instanceof SealpostError ? error.advice : undefined);
     for await (const one of client.stream(['0x00'], { from: 1 })) one.fullReport.at(0);
     for await (const { reports } of client.pages('0x00', { from: 1, follow: true })) reports.map(decode);
     // @ts-expect-error seconds are a number
     void client.at('0x00', '1763200000');
     // @ts-expect-error there is no such filter
     void client.discovery({ base: 'BTC' });
     // @ts-expect-error a verdict that may be bad has no decoded report
     export const unchecked = verdict.decoded;`,
  // Rows of reports are made from what the client returns.
  'rows.ts': `import { createClient } from '@sealpost/client';
     import { columnsOf, createCsv, exportRowOf } from '@sealpost/client/export';
     const client = createClient({ baseUrl: 'https://api.example.org' });
     const { feedId } = await client.findStream('ETH/USD');
     const { report } = await client.latest(feedId);
     const columns = columnsOf([3], { isDecoded: true, isRaw: false, hasFullReport: false });
     const csv = createCsv(columns);
     const { row } = exportRowOf(columns, { feedId, name: 'ETH/USD' }, report, true);
     export const text: string = row === undefined ? '' : csv.add([row]) + csv.end();`,
  // A program names the type of every argument and result of the client by the client alone.
  'named.ts': `import { createClient, decode, formatDecimal, SealpostError, signRequest, verify, withFeeToken } from '@sealpost/client';
     import type {
       AnswerDetails, AnyReport, BulkReports, CallOptions, Candle, CandleRange, CandlesManyResult, CandlesResult, CatalogEntry, CatalogResult, Client, ClientEvent,
       ClientOptions, ClientWarning, Coverage, CoverageManyResult, CoverageResult, Credentials, CredentialsSource, DecodedReport, DiscoveryFilters, FeedsResult,
       FeeTokenEncoding, Hex, MissingReport, OneReport, PagesOptions, ReconnectRules, ReportBody, ReportJson, ReportPage, ReportStream,
       RequestToSign, SealpostErrorCode, SecretSource, ServiceStatus, SignerSet, SignerSets, SignerSetsJson, SignersResult, Sleep, TimeRange, StatusResult,
       StreamCoverage, StreamDifference, StreamGap, StreamOptions, StreamState, TimeResult, TransportName, Verdict, VerifyFailure,
     } from '@sealpost/client';
     type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : never) : never;
     type Result<K extends keyof Client> = Client[K] extends (...args: never[]) => infer R ? Awaited<R> : never;
     type Argument<K extends keyof Client, N extends number> = Client[K] extends (...args: infer A) => unknown ? NonNullable<A[N]> : never;
     // Every call of the client is a row: one that is added and not named here does not compile.
     export const results: { [K in keyof Client]: true } = {
       latest: true satisfies Same<Result<'latest'>, OneReport>,
       latestMany: true satisfies Same<Result<'latestMany'>, BulkReports>,
       at: true satisfies Same<Result<'at'>, OneReport>,
       bulk: true satisfies Same<Result<'bulk'>, BulkReports>,
       page: true satisfies Same<Result<'page'>, ReportPage>,
       pages: true satisfies Same<Result<'pages'>, AsyncGenerator<ReportPage, void, undefined>>,
       stream: true satisfies Same<Result<'stream'>, ReportStream>,
       discovery: true satisfies Same<Result<'discovery'>, CatalogResult>,
       findStream: true satisfies Same<Result<'findStream'>, CatalogEntry>,
       feeds: true satisfies Same<Result<'feeds'>, FeedsResult>,
       coverage: true satisfies Same<Result<'coverage'>, CoverageResult>,
       coverageMany: true satisfies Same<Result<'coverageMany'>, CoverageManyResult>,
       candles: true satisfies Same<Result<'candles'>, CandlesResult>,
       candlesMany: true satisfies Same<Result<'candlesMany'>, CandlesManyResult>,
       signers: true satisfies Same<Result<'signers'>, SignersResult>,
       time: true satisfies Same<Result<'time'>, TimeResult>,
       status: true satisfies Same<Result<'status'>, StatusResult>,
     };
     export const options = [
       true satisfies Same<Argument<'latest', 1>, CallOptions>,
       true satisfies Same<Argument<'pages', 1>, PagesOptions>,
       true satisfies Same<Argument<'stream', 1>, StreamOptions>,
       true satisfies Same<Argument<'discovery', 0>, DiscoveryFilters>,
       true satisfies Same<Argument<'coverage', 1>, TimeRange>,
       true satisfies Same<Argument<'candles', 1>, CandleRange>,
       true satisfies Same<Parameters<typeof createClient>, [options: ClientOptions]>,
       true satisfies Same<Parameters<typeof decode>, [report: AnyReport]>,
       true satisfies Same<ReturnType<typeof decode>, DecodedReport>,
       true satisfies Same<Parameters<typeof verify>, [report: ReportJson | string, signers: SignerSets | SignerSetsJson]>,
       true satisfies Same<ReturnType<typeof verify>, Verdict>,
       true satisfies Same<Parameters<typeof signRequest>[0], RequestToSign>,
       true satisfies Same<SealpostError['code'], SealpostErrorCode>,
     ];
     export const parts = (page: ReportPage, coverage: CoverageResult, candles: CandlesResult, status: StatusResult, many: BulkReports) =>
       [page.reports[0] satisfies ReportJson | undefined, page.details satisfies AnswerDetails, coverage.coverage satisfies Coverage,
        candles.candles satisfies readonly Candle[], status.status satisfies ServiceStatus, many.missing satisfies readonly MissingReport[]];
     export const hooks = (event: ClientEvent, warning: ClientWarning, state: StreamState, gap: StreamGap) => {
       if (event.kind === 'attempt') return event.durationMs;
       return event.kind === 'gap' ? event.to : [warning.code, state.phase, gap.feedId];
     };
     export type Rest = [Credentials, CredentialsSource, SecretSource, Sleep, ReconnectRules, TransportName, FeeTokenEncoding, SignerSet, ReportBody, StreamDifference, VerifyFailure];
     export const token: readonly [Hex, Hex] = withFeeToken('0x');
     export const text: string = formatDecimal(1n);`,
};

test('package: the types of simulator, server and sandbox compile beside Node’s', () => {
  compile(
    'on-node',
    {
      'stranger.ts': `import { createNetwork } from '@sealpost/simulator';
     import { openStore, type Store } from '@sealpost/server';
     import { type Sandbox, SandboxError, startSandbox } from '@sealpost/sandbox';
     export const sandbox: Promise<Sandbox> = startSandbox({ streams: ['ETH/USD', { name: 'FOO/USD', schema: 11 }] });
     export const price = async () => (await (await sandbox).push('ETH/USD', 4200n, { bid: '1' })).fullReport satisfies string;
     export const outage = async () => (await sandbox).fault({ kind: 'status', status: 503 }).applied satisfies number;
     export const argument = (error: unknown) => (error instanceof SandboxError ? error.argument : undefined);
     // @ts-expect-error there is no such status
     void sandbox.then(({ fault }) => fault({ kind: 'status', status: 'high' }));
     export const network: Promise<{ signerSet: { f: number } }> = createNetwork({ seed: 's' });
     export const store: Promise<Store> = openStore('./a-store', 'read');`,
    },
    ['node'],
  );
});

const consumer = `
  import { createClient, decode, SealpostError, verify } from '@sealpost/client';
  import { latest, openRequester, type Requester } from '@sealpost/client/calls';
  import { decodeVerifierError, verifierProxyAbi, verifyCalldata } from '@sealpost/client/onchain';
  import { type FeedId, parseFeedId } from '@sealpost/protocol';
  import { signRequest } from '@sealpost/protocol/request-signing';
  export const feedId: FeedId = parseFeedId('x');
  export const read = async () => decode((await createClient({ baseUrl: 'x' }).latest(feedId)).report).price satisfies bigint;
  export const requester: Requester = openRequester({ baseUrl: 'x' });
  export const alone = async () => (await latest(requester, feedId)).report.fullReport satisfies string;
  export const calldata = verifyCalldata('0x') satisfies \`0x\${string}\`;
  export const verifyName: 'verify' = verifierProxyAbi[0].name;
  export const reverted: string | undefined = decodeVerifierError('0x').name;
  export const code = (error: unknown) => (error instanceof SealpostError ? error.code : undefined);
  export const all = [verify, signRequest];
  // @ts-expect-error seconds are a number
  void createClient({ baseUrl: 'x' }).at('0x00', '1763200000');`;

test('package: the client’s types compile with a browser’s alone, found by import and by require()', () => {
  const files = { ...inBrowser, 'required.cts': consumer, 'imported.mts': consumer };
  compile('in-a-browser', files, [], ['ES2023', 'DOM', 'DOM.AsyncIterable']);
});

test.each([
  ['@sealpost/server', ['ingest/verifier-thread.js', 'store/lmdb/write/writer-thread.js']],
  ['@sealpost/simulator', ['signing-thread.js']],
])(
  'package: threads of %s load one file instead of a hundred, and the licenses of what it holds are there',
  (name, modules) => {
    const dist = join(stranger, 'node_modules', name, 'dist');
    const texts = modules.map((module) => readFileSync(join(dist, module), 'utf8'));
    for (const text of texts) expect(text).not.toMatch(/(from|import\() ?["'](ox|@noble|@scure|@sealpost|\.)/);
    const paths = texts.flatMap((text) => [...text.matchAll(/^\/\/ (\S+\.js)$/gm)].map(([, path]) => path));
    expect(paths).not.toEqual([]);
    expect(paths.filter((path) => path?.startsWith('.') || path?.startsWith('/'))).toEqual([]); // nothing of this machine
    const licenses = readFileSync(join(dist, 'third-party-licenses.txt'), 'utf8');
    for (const copied of ['ox', '@noble/curves', '@noble/hashes'])
      expect(licenses).toMatch(new RegExp(`^${copied} \\d[^]*?Permission is hereby granted`, 'm'));
  },
);

test('package: every package has its license, its README and its address, and no test code', () => {
  for (const [workspace, name] of published) {
    const place = join(stranger, 'node_modules', name);
    const paths = filesBelow(place);
    const entries =
      name === 'sealpost' ? ['bin/sealpost.js'] : ['dist/index.js', 'dist/index.d.ts', 'dist/cjs/index.d.ts'];
    for (const path of ['LICENSE', 'README.md', ...entries]) expect(paths, name).toContain(path);
    expect(readText(`${workspace}/LICENSE`)).toBe(readText('LICENSE'));
    expect(paths.filter((path) => /\.(test|fuzz|bench|contract|fixture)\.|(^|\/)\.[^/]+$/.test(path))).toEqual([]);
    const testing = paths
      .filter((path) => /\.[jt]s$/.test(path))
      .filter((path) => {
        const text = readFileSync(join(place, path), 'utf8');
        return /from '(vitest|fast-check)'|from '[./]*tests\//.test(text);
      });
    expect(testing).toEqual([]);
    const address = 'https://github.com/sealpost/sealpost';
    expect(JSON.parse(readFileSync(join(place, 'package.json'), 'utf8'))).toMatchObject({
      license: 'Apache-2.0',
      repository: { type: 'git', url: `git+${address}.git`, directory: workspace },
      homepage: expect.stringContaining(address),
      bugs: `${address}/issues`,
      keywords: expect.arrayContaining(['signed-reports']),
      ...(name === 'sealpost' ? {} : { main: './dist/index.js', types: './dist/index.d.ts' }),
    });
  }
});

// In `npm test` the two that everyone imports: the others have the same exports from the same build, the tests above import and compile them, and the
// server's 500 files take 20 s. The command has no module to import.
test.each(
  [...published.values()].filter(
    (name) => (isFull && name !== 'sealpost') || ['@sealpost/client', '@sealpost/protocol'].includes(name),
  ),
)('package: publint and arethetypeswrong have nothing to say about %s', async (name) => {
  const tarball = readFileSync(tarballOf(name));
  const { messages } = await publint({ pack: { tarball: new Uint8Array(tarball).buffer }, strict: true });
  expect(messages).toEqual([]);
  const analysis = await checkPackage(createPackageFromTarballData(new Uint8Array(tarball)));
  expect(analysis.types && analysis.problems).toEqual([]);
});

test('package: only packages that work without them have install scripts', () => {
  const { packages } = readJson('package-lock.json') as { packages: Record<string, Record<string, unknown>> };
  const scripted = Object.entries(packages).filter(([, entry]) => entry.hasInstallScript === true && !entry.dev);
  expect(scripted.map(([path]) => path.replace(/^.*node_modules\//, '')).sort()).toEqual(['lmdb', 'msgpackr-extract']);
});

test('package: the EVM is not installed with the server, and a chain says how to install it', () => {
  const sandbox = spawnSync(join(stranger, 'node_modules/.bin/sealpost'), ['sandbox', '--chain'], {
    cwd: folder,
    encoding: 'utf8',
  });
  expect([sandbox.status, sandbox.stdout]).toEqual([3, '']);
  expect(sandbox.stderr).toMatch(
    /which is not installed\. Install it next to sealpost: npm install @nomicfoundation\/edr@\d/,
  );
});

/** Reads the newest price of a demo with the installed client, by import and by require(). */
const expectPrices = (demo: { url: string; userId: string; secret: string }): void => {
  const body = `
    const client = createClient({ baseUrl: demo.url, userId: demo.userId, secret: demo.secret });
    const { feeds } = await client.discovery({ baseAsset: 'BTC', quoteAsset: 'USD', status: 'live' });
    const { report } = await client.latest(feeds[0].feedId);
    const streamed = (await client.stream([feeds[0].feedId])[Symbol.asyncIterator]().next()).value;
    const { signers } = await client.signers();
    console.log(verify(report, signers).ok, verify(streamed, signers).ok, typeof decode(report).price);
    process.exit(0);`;
  const names = '{ createClient, decode, verify }';
  const given = `const demo = ${JSON.stringify(demo)};`;
  writeFileSync(join(stranger, 'read.mjs'), `import ${names} from '@sealpost/client'; ${given} ${body}`);
  writeFileSync(
    join(stranger, 'read.cjs'),
    `const ${names} = require('@sealpost/client'); ${given} (async () => {${body}})();`,
  );
  for (const file of ['read.mjs', 'read.cjs']) expect(run('node', [file])).toBe('true true bigint\n');
};

test('package: the installed server serves the explorer, and prices to the installed client', async () => {
  const paths = readdirSync(join(stranger, 'node_modules/@sealpost/server/public'), { recursive: true }).map(String);
  expect(paths).toContain('index.html');
  expect(paths.filter((path) => path.startsWith('.') || path.endsWith('.map'))).toEqual([]);
  const program = join(stranger, 'node_modules/sealpost/bin/sealpost.js');
  const where = ['--port', '0', '--past', '1', '--dir', join(folder, 'demo')];
  const args = [program, 'demo', '--json', ...where];
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    const [line] = await once(child.stdout, 'data');
    const page = await (await fetch(JSON.parse(String(line)).url)).text();
    const script = /<script type="module"[^>]* src="([^"]+)"/.exec(page)?.[1] ?? '';
    expect((await fetch(new URL(script, JSON.parse(String(line)).url))).status).toBe(200);
    expectPrices(JSON.parse(String(line)));
  } finally {
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  }
});
