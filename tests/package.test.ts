// Packs every package, installs the tarballs together in an empty project, and uses them as a stranger would: with types.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listFiles, readJson, root, workspaces } from './source-tree.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-package-'));
const stage = join(folder, 'stage');
const stranger = join(folder, 'stranger');
/** Folder → name of the packages that are published; the explorer goes out as files of the server's. */
const published = new Map([...workspaces()].filter(([folder]) => readJson(`${folder}/package.json`).private !== true));
const run = (command: string, args: readonly string[], cwd = stranger): string =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

// Built in a copy: a dist/ that comes and goes in the work tree would change what other tests run.
const stageCopy = (): void => {
  for (const path of listFiles('').filter(Boolean)) cpSync(join(root, path), join(stage, path));
  mkdirSync(join(stage, 'node_modules/@sealpost'), { recursive: true });
  const entries = readdirSync(join(root, 'node_modules')).filter(
    (name) => name !== '@sealpost' && ![...workspaces().values()].includes(name),
  );
  for (const name of entries) symlinkSync(join(root, 'node_modules', name), join(stage, 'node_modules', name));
  for (const [workspace, name] of workspaces()) {
    symlinkSync(join(stage, workspace), join(stage, 'node_modules', name));
    const own = join(root, workspace, 'node_modules');
    if (existsSync(own)) symlinkSync(own, join(stage, workspace, 'node_modules'));
  }
};

beforeAll(() => {
  stageCopy();
  mkdirSync(stranger);
  run('npm', ['run', 'build'], stage);
  for (const workspace of published.keys())
    run('npm', ['pack', '--pack-destination', stranger], join(stage, workspace));
  writeFileSync(join(stranger, 'package.json'), JSON.stringify({ name: 'stranger', private: true, type: 'module' }));
  const tarballs = readdirSync(stranger).filter((name) => name.endsWith('.tgz'));
  run('npm', [
    'install',
    '--ignore-scripts',
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
    ...tarballs.map((name) => `./${name}`),
  ]);
}, 180_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('package: every package installs from its tarball', () => {
  expect(Object.keys(JSON.parse(run('npm', ['ls', '--json', '--depth=0'])).dependencies).sort()).toEqual(
    [...published.values()].sort(),
  );
});

test('package: a stranger imports them and the values come out', () => {
  const script = `
    import { parseFeedId, schemaVersionOf } from '@sealpost/protocol';
    import { signRequest } from '@sealpost/protocol/request-signing';
    import vectors from '@sealpost/protocol/vectors/reports.json' with { type: 'json' };
    import { createClient, decode } from '@sealpost/client';
    import { createNetwork } from '@sealpost/simulator';
    import { openStore } from 'sealpost';
    createClient({ baseUrl: 'http://127.0.0.1:7401' });
    decode(vectors.reports[0].fullReport);
    const version = schemaVersionOf(parseFeedId('0x0003' + '0'.repeat(60)));
    const network = await createNetwork({ seed: 'stranger' });
    const headers = signRequest({ method: 'GET', target: '/', userId: 'u', timestampMs: 1 }, 's');
    const store = await openStore('./a-store', 'write');
    await store.close();
    console.log(JSON.stringify([version, vectors.reports.length, network.signerSet.addresses.length, Object.keys(headers).length]));`;
  expect(JSON.parse(run('node', ['--no-warnings', '--input-type=module', '--eval', script]))).toEqual([3, 16, 4, 3]);
});

/** Compiles a stranger's file in strict mode, the shipped types included. */
const compile = (name: string, source: string, types: readonly string[], lib: readonly string[] = ['ES2023']): void => {
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
  writeFileSync(join(place, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
  writeFileSync(join(place, 'package.json'), JSON.stringify({ type: 'module' }));
  writeFileSync(join(place, 'stranger.ts'), source);
  run(join(root, 'node_modules/.bin/tsc'), ['-p', place]);
};

test('package: the protocol’s types need neither Node nor a browser, and a wrong use does not compile', () => {
  compile(
    'anywhere',
    `import { decodeFullReport, decodeReportBody, type FeedId, parseFeedId } from '@sealpost/protocol';
     const body = decodeReportBody(decodeFullReport('0x').body);
     export const price: bigint | undefined = body.version === 3 ? body.price : undefined;
     export const feedId: FeedId = parseFeedId('x');
     // @ts-expect-error a raw string is no feed id
     export const raw: FeedId = '0x00';
     // @ts-expect-error version 2 has no bid
     export const bid = body.version === 2 ? body.bid : 0n;`,
    [],
  );
});

test('package: the client’s types compile with a browser’s alone, and a wrong use does not', () => {
  compile(
    'in-a-browser',
    `import { createClient, decode, SealpostError, verify, withFeeToken } from '@sealpost/client';
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
    [],
    ['ES2023', 'DOM', 'DOM.AsyncIterable'],
  );
});

test('package: the types of simulator and server compile beside Node’s', () => {
  compile(
    'on-node',
    `import { createNetwork } from '@sealpost/simulator';
     import { openStore, type Store } from 'sealpost';
     export const network: Promise<{ signerSet: { f: number } }> = createNetwork({ seed: 's' });
     export const store: Promise<Store> = openStore('./a-store', 'read');`,
    ['node'],
  );
});

test('package: tarballs hold what publishing needs and no tests', () => {
  for (const workspace of published.keys()) {
    const [packed] = JSON.parse(run('npm', ['pack', '--dry-run', '--json'], join(stage, workspace)));
    const paths = packed.files.map(({ path }: { path: string }) => path) as string[];
    expect(paths).toContain('dist/index.js');
    expect(paths).toContain('dist/index.d.ts');
    expect(paths.filter((path) => /\.(test|fuzz|bench)\./.test(path))).toEqual([]);
    expect(readJson(`${workspace}/package.json`).license).toBe('Apache-2.0');
  }
});

test('package: publint finds nothing to say', () => {
  for (const workspace of published.keys())
    run(join(root, 'node_modules/.bin/publint'), ['--strict'], join(stage, workspace));
});

test('package: the commands run from their tarballs', () => {
  expect(run(join(stranger, 'node_modules/.bin/sealpost'), ['--help'])).toContain('sealpost config shows them');
  expect(run(join(stranger, 'node_modules/.bin/sealpost-sim'), ['--help'])).toContain('--seed');
});

test('package: the installed server has the explorer, and serves it', async () => {
  const paths = readdirSync(join(stranger, 'node_modules/sealpost/public'), { recursive: true }).map(String);
  expect(paths).toContain('index.html');
  expect(paths.filter((path) => path.startsWith('.') || path.endsWith('.map'))).toEqual([]);
  const program = join(stranger, 'node_modules/sealpost/bin/sealpost.js');
  const child = spawn(process.execPath, [program, 'demo', '--json', '--port', '0', '--dir', join(folder, 'demo')], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  try {
    const [line] = await once(child.stdout, 'data');
    const page = await (await fetch(JSON.parse(String(line)).url)).text();
    const script = /<script type="module"[^>]* src="([^"]+)"/.exec(page)?.[1] ?? '';
    expect((await fetch(new URL(script, JSON.parse(String(line)).url))).status).toBe(200);
  } finally {
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  }
}, 60_000);
