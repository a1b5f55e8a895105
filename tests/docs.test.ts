// Holds the documents against the code, both ways, and runs what the README shows.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type ErrorCode, errorTable } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { joinDemo } from './demo-host.ts';
import { startCommand } from './support/real-program.ts';
import { runWithTsx } from './support/running-demo.ts';
import { listFiles, readJson, readSources, readText, root, workspaces } from './support/source-tree.ts';

const documents = listFiles('.md');
const decisions = readText('docs/decisions.md');
const decided = [...decisions.matchAll(/^### (D\d+)\. /gm)].map(([, number]) => number as string);

test('docs: every decision that code or documents cite exists, and none has two meanings', () => {
  expect(new Set(decided).size).toBe(decided.length);
  const texts = [
    ...readSources().map(({ path, text }) => [path, text] as const),
    ...documents.map((path) => [path, readText(path)] as const),
  ];
  for (const [path, text] of texts) {
    for (const [number] of text.matchAll(/\bD[1-9]\d{0,2}\b/g))
      expect(decided, `${path} cites ${number}`).toContain(number);
  }
});

test('docs: every runtime dependency has a decision that names its reason', () => {
  const headings = decisions.split('\n').filter((line) => line.startsWith('### '));
  for (const workspace of workspaces().keys()) {
    const names = Object.keys((readJson(`${workspace}/package.json`).dependencies ?? {}) as object);
    for (const name of names.filter((dependency) => ![...workspaces().values()].includes(dependency))) {
      expect(
        headings.some((line) => line.includes(`\`${name}\``) && line.includes(workspace)),
        `${name} of ${workspace}`,
      ).toBe(true);
    }
  }
});

test('docs: errors.md lists exactly the codes of the table, with status and retry', () => {
  const rows = [...readText('docs/errors.md').matchAll(/^\| `(\w+)`\s+\| (\d+)\s+\| (yes|no)\s+\|/gm)];
  const documented = Object.fromEntries(
    rows.map(([, code, status, retry]) => [code, { status: Number(status), retry: retry === 'yes' }]),
  );
  const codes = Object.keys(errorTable) as ErrorCode[];
  expect(documented).toEqual(
    Object.fromEntries(codes.map((code) => [code, { status: errorTable[code].status, retry: errorTable[code].retry }])),
  );
});

test('docs: every link leads to a file that exists', () => {
  for (const path of documents) {
    for (const [, target] of readText(path).matchAll(/\]\((?!https?:|#)([^)#]+)/g)) {
      expect(existsSync(join(root, dirname(path), target as string)), `${path} → ${target}`).toBe(true);
    }
  }
});

test('docs: every path that a document names exists', () => {
  for (const path of documents) {
    for (const [, named] of readText(path).matchAll(
      /`((?:protocol|client|simulator|server|explorer|tests|bench|docs|examples)\/[\w./-]+)`/g,
    )) {
      expect(existsSync(join(root, named as string)), `${path} names ${named}`).toBe(true);
    }
  }
});

test('docs: reliability.md has a row for each test with a full count', () => {
  const rows = readText('docs/reliability.md');
  const counts = /import \{[^}]*\bcountOf\b[^}]*\} from '[^']*full-count\.ts'/;
  const counted = readSources().filter(({ path, text }) => /\.(test|fuzz)\.ts$/.test(path) && counts.test(text));
  expect(counted.length).toBeGreaterThan(30);
  expect(counted.map(({ path }) => path).filter((path) => !rows.includes(`\`${path}\``))).toEqual([]);
});

test('docs: the folder map has a row for each folder of the project, and no other', () => {
  const map = (readText('ARCHITECTURE.md').split('## Folder map')[1] ?? '').split('## Recipes')[0] ?? '';
  const rows = [...map.matchAll(/^\| `([^`]+)` \| \S/gm)].map(([, folder]) => folder as string);
  // A package's own folder holds its manifest; bin/, systemd/, what releases left and the like are part of what a row describes.
  const isMapped = (folder: string): boolean =>
    /^[a-z]+\/src(\/|$)|^(tests|bench|contracts|examples|deploy|docs|packaging)(\/|$)/.test(folder) &&
    !/^(docs|deploy|tests\/formats)\//.test(folder);
  const folders = new Set(
    listFiles('')
      .map((path) => dirname(path))
      .filter(isMapped),
  );
  expect(rows.toSorted()).toEqual([...folders].toSorted());
});

test('docs: the README’s commands are scripts of the project', () => {
  const scripts = readJson('package.json').scripts as Record<string, string>;
  for (const [, name] of readText('README.md').matchAll(/npm (?:run )?(start|test|bench|build|lint|format)\b/g))
    expect(scripts).toHaveProperty(name as string);
});

const codeBlocks = (language: string): readonly string[] =>
  [...readText('README.md').matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(
    ([, code]) => code as string,
  );

test('docs: the README’s code runs as printed, against the demo', async () => {
  const blocks = codeBlocks('ts');
  expect(blocks.length).toBeGreaterThan(0);
  const folder = mkdtempSync(join(root, 'data-readme-'));
  const demo = await joinDemo();
  try {
    // As `npx sealpost signers list --json` prints them, which the demo's own folder would be needed for.
    writeFileSync(join(folder, 'signers.json'), await (await fetch(`${demo.url}/signers.json`)).text());
    for (const [i, code] of blocks.entries()) {
      const file = join(folder, `try-${i}.ts`); // as the README names it: in the clone, as a module
      writeFileSync(file, code);
      const printed = await runWithTsx(file, demo.env, [], folder);
      expect(printed, code).toMatch(/^ETH\/USD\S* [0-9.]+$/m);
    }
    expect(codeBlocks('sh')).toContain('npx sealpost watch\n');
    const watch = startCommand(['watch'], folder, demo.env);
    await watch.printed(/^\{.*"price":"[0-9.]+".*"name":"ETH\/USD/m);
    watch.child.kill('SIGINT');
    await watch.finished;
  } finally {
    await demo.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}, 600_000);

test('docs: the README’s shell commands run as printed, one after the other', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-readme-'));
  try {
    const lines = codeBlocks('sh')
      .flatMap((block) => block.split('\n'))
      // What needs a running service is run with the code above.
      .filter((line) => line.startsWith('npx ') && !/^npx sealpost (watch$|signers list)/.test(line));
    expect(lines.length).toBeGreaterThan(3);
    for (const line of lines) {
      // A minute instead of an hour: the same commands, sooner done.
      const args = line.replace(/^npx sealpost /, '').replace('-1h', '-1m');
      execFileSync('bash', ['-c', `node ${join(root, 'cli/bin/sealpost.js')} ${args}`], {
        cwd: folder,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 600_000);

test('docs: nothing says to install our packages by their names, which are not on the npm registry', () => {
  const files = listFiles('.md', '.ts', '.tsx', '.mjs', '.service', 'Dockerfile', '.yaml');
  const texts = files
    .filter((path) => path !== 'CHANGELOG.md' && !path.startsWith('tests/'))
    .map((path) => [path, readText(path)] as const);
  const installs = /npm (?:install|i|add|exec) [^\n`($]*?(?<![\w/.-])(?:sealpost|@sealpost\/\w+)(?![\w/.-])/g;
  expect('npm install -g sealpost'.match(installs)).not.toBeNull();
  expect('npm install ./dist-packages/sealpost-client-0.1.0.tgz'.match(installs)).toBeNull();
  expect(texts.flatMap(([path, text]) => (text.match(installs) ?? []).map((found) => `${path}: ${found}`))).toEqual([]);
  const pages = texts
    .filter(([path]) => path.startsWith('explorer/'))
    .filter(([, text]) => text.includes('npx sealpost'));
  expect(pages.map(([path]) => path)).toEqual([]);
});
