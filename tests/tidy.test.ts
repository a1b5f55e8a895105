// The house rules that a machine can check. Each failure says the rule's reason.
import { builtinModules } from 'node:module';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { isTest, listFiles, readJson, readSources, workspaces } from './support/source-tree.ts';

const sources = readSources();
const product = sources.filter(({ path }) => !isTest(path) && path.includes('/src/'));
const packages = workspaces();
const offenders = (found: readonly string[], reason: string) =>
  expect(found, `${reason}\n${found.join('\n')}`).toEqual([]);

/** Who may import whom: area → areas it may import. An area is a package, or a folder of one. */
const layers: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  client: ['protocol'],
  explorer: ['client', 'protocol'],
  simulator: ['protocol'],
  'server/src/runtime': [],
  'server/src/connections': ['protocol'],
  'server/src/config': ['protocol', 'server/src/runtime'],
  'server/src/store': ['protocol', 'server/src/runtime'],
  'server/src/ingest': ['protocol', 'server/src/connections', 'server/src/runtime', 'server/src/store'],
  'server/src/access': ['protocol', 'server/src/runtime', 'server/src/store'],
  'server/src/http': [
    'protocol',
    'server/src/access',
    'server/src/connections',
    'server/src/runtime',
    'server/src/store',
  ],
  'server/src/live': ['protocol', 'server/src/access', 'server/src/connections', 'server/src/http', 'server/src/store'],
  'server/src/observe': [
    'protocol',
    'server/src/access',
    'server/src/config',
    'server/src/connections',
    'server/src/http',
    'server/src/ingest',
    'server/src/live',
    'server/src/runtime',
    'server/src/store',
  ],
  'conformance/src': ['protocol'],
  'server/src/ops': ['protocol', 'server/src/connections', 'server/src/observe', 'server/src/runtime'],
  'server/src/node/hooks': ['protocol', 'server/src/http', 'server/src/live', 'server/src/store'],
  'server/src/node/write-path': [
    'server/src/config',
    'server/src/ingest',
    'server/src/node/hooks',
    'server/src/observe',
    'server/src/runtime',
    'server/src/store',
  ],
  'server/src/node/read-path': [
    'server/src/access',
    'server/src/connections',
    'server/src/http',
    'server/src/live',
    'server/src/node/hooks',
    'server/src/node/write-path',
    'server/src/observe',
    'server/src/runtime',
    'server/src/store',
  ],
  'server/src/cluster': [
    'protocol',
    'server/src/access',
    'server/src/connections',
    'server/src/live',
    'server/src/node/read-path',
    'server/src/node/write-path',
    'server/src/observe',
    'server/src/runtime',
    'server/src/store',
  ],
  'server/src/node': [
    'protocol',
    'server/src/access',
    'server/src/cluster',
    'server/src/config',
    'server/src/http',
    'server/src/ingest',
    'server/src/node/hooks',
    'server/src/node/read-path',
    'server/src/node/write-path',
    'server/src/observe',
    'server/src/ops',
    'server/src/runtime',
    'server/src/store',
  ],
  'server/src/index': ['server/src/config', 'server/src/node', 'server/src/node/hooks', 'server/src/store'],
  'sandbox/src/index': ['sandbox/src/start'],
  'sandbox/src/start': [
    'client',
    'protocol',
    'simulator',
    'sandbox/src',
    'server/src/access',
    'server/src/config',
    'server/src/ingest',
    'server/src/node',
    'server/src/store',
  ],
  'sandbox/src': [
    'client',
    'protocol',
    'simulator',
    'server/src/access',
    'server/src/http',
    'server/src/live',
    'server/src/ingest',
    'server/src/node/hooks',
    'server/src/runtime',
    'server/src/store',
  ],
  'cli/src': [
    'client',
    'protocol',
    'simulator',
    'conformance/src',
    'sandbox/src',
    'sandbox/src/start',
    'server/src/access',
    'server/src/config',
    'server/src/ingest',
    'server/src/node',
    'server/src/runtime',
    'server/src/store',
  ],
};

const areaOf = (path: string): string | undefined =>
  Object.keys(layers).find((area) => path.startsWith(`${area}/`) || path === `${area}.ts`);
const packageFolder = (name: string): string | undefined =>
  [...packages].find(([, packageName]) => name === packageName || name.startsWith(`${packageName}/`))?.[0];
const targetArea = (name: string): string | undefined => packageFolder(name) ?? areaOf(name);

test('tidy: imports follow the flow of the layer table', () => {
  const against = product.flatMap(({ path, imports }) => {
    const area = areaOf(path);
    if (area === undefined) return [`${path} belongs to no layer`];
    const foreign = imports.filter((name) => (targetArea(name) ?? area) !== area);
    return foreign
      .filter((name) => !layers[area]?.includes(targetArea(name) as string))
      .map((name) => `${path} → ${name}`);
  });
  offenders(against, 'Data flows one way; an import against the flow couples what must stay apart.');
});

/** What loading a file loads: its imports but those of types and those on demand, and theirs. */
const loadedWith = (path: string, seen = new Set<string>()): ReadonlySet<string> => {
  seen.add(path);
  const text = sources.find((one) => one.path === path)?.text ?? '';
  for (const [, name = ''] of text.matchAll(/^(?:import|export) (?!type )[^'"`;]*?\bfrom '([^']+)';/gm)) {
    const target = name.startsWith('.') ? join(dirname(path), name) : name;
    if (!seen.has(target)) loadedWith(target, seen);
  }
  return seen;
};

test('tidy: a command line loads only its own command, and a server only when it runs one', () => {
  const table = 'cli/src/commands/command-table.ts';
  const commands = sources.find(({ path }) => path === table)?.imports.filter((path) => path.includes('/commands/'));
  const loaded = (path: string, unwanted: readonly string[]) =>
    unwanted.filter((one) => loadedWith(path).has(one)).map((one) => `${path} → ${one}`);
  const heavy = ['@sealpost/simulator', 'lmdb', 'ox', 'pino', 'prom-client', 'ws', 'server/src/node/node.ts'];
  expect(commands).toContain('cli/src/commands/serve.ts');
  offenders(
    [...loaded('cli/src/main.ts', [...heavy, ...(commands ?? [])]), ...loaded('cli/src/commands/serve.ts', heavy)],
    'All commands take 0.9 s of CPU to load: see command-table.ts.',
  );
});

test('tidy: only the environment calls lmdb, and its reads without a copy', () => {
  const others = sources
    .filter(({ path }) => path.startsWith('server/') && path !== 'server/src/store/lmdb/environment.ts')
    .filter(({ path, imports, text }) => imports.includes('lmdb') || (!isTest(path) && text.includes('getBinaryFast')))
    .map(({ path }) => path);
  offenders(others, 'lmdb returns its whole read buffer under a false length, which the next read overwrites.');
});

/** The folder of a set that a path is in: an engine of the store, a page of the explorer. */
const folderIn = (parent: string, names: readonly string[], path: string): string | undefined =>
  names.map((name) => `${parent}/${name}/`).find((folder) => path.startsWith(folder));
const importsAcross = (parent: string, names: readonly string[], allowed: readonly string[]): readonly string[] =>
  product
    .filter(({ path }) => !allowed.includes(path))
    .flatMap(({ path, imports }) =>
      imports
        .filter((name) => {
          const target = folderIn(parent, names, name);
          return target !== undefined && target !== folderIn(parent, names, path);
        })
        .map((name) => `${path} → ${name}`),
    );

test('tidy: threads load nothing native, but for the one that writes', () => {
  const started = product.flatMap(({ path, text }) =>
    [...text.matchAll(/^(?! \*).*startThread\('(\.[^']+)'/gm)].map(([, name]) => join(dirname(path), `${name}.ts`)),
  );
  expect(started).toContain('server/src/ingest/verifier-thread.ts');
  const importsOf = new Map(sources.map(({ path, imports }) => [path, imports]));
  const reached = new Set([...started, 'simulator/src/signing-thread.ts']);
  reached.delete('server/src/store/lmdb/write/writer-thread.ts');
  for (const path of reached) for (const name of importsOf.get(path) ?? []) reached.add(name);
  const plain = /^(node:|ox(\/|$)|@noble\/|@sealpost\/(protocol|simulator)$)/;
  offenders(
    [...reached].filter((name) => !importsOf.has(name) && !plain.test(name)),
    'A thread that is ended while it loads a native addon aborts the process (D202).',
  );
});

test('tidy: only store/open.ts imports an engine', () => {
  offenders(
    importsAcross('server/src/store', ['lmdb', 'memory', 'postgres'], ['server/src/store/open.ts']),
    'Everyone else uses the contract in store.ts, whatever the engine; what two engines share stands beside it.',
  );
});

test('tidy: pages of the explorer do not import each other', () => {
  offenders(
    importsAcross(
      'explorer/src',
      ['alerts', 'catalog', 'docs', 'inspect', 'report', 'status', 'stream'],
      ['explorer/src/pages.tsx'],
    ),
    'What two pages share belongs in ui/ or state/.',
  );
});

test('tidy: the explorer shows times in the zone that the user chose', () => {
  const others = product
    .filter(({ path }) => path.startsWith('explorer/') && !/\/(ui\/format|settings\/times)\.ts$/.test(path))
    .filter(({ text }) => /\bformat(Utc|Local)\b/.test(text))
    .map(({ path }) => path);
  offenders(others, 'One switch for all times: call `times.format` (state/settings/times.ts) or render `<Time>`.');
});

test('tidy: no import cycles between files', () => {
  const graph = new Map(sources.map(({ path, imports }) => [path, imports]));
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) cycles.push([...trail.slice(trail.indexOf(path)), path].join(' → '));
    if (done.has(path) || trail.includes(path)) return;
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  offenders(cycles, 'Files in a cycle can only be understood together.');
});

/** A cast in a line of code; names after it are types, or the words that types begin with. */
const cast =
  /[\w)\]}!] as (?:readonly |unknown\b|never\b|string\b|number\b|boolean\b|bigint\b|\(?(?:keyof|typeof) |[A-Z]|\{ )/;

test('tidy: every cast has its reason on the line', () => {
  const bare = product.flatMap(({ path, text }) => {
    const lines = text.split('\n');
    return lines.flatMap((line, i) => {
      if (/^\s*(\/\/|\*|\/\*|import |export \{|\} from)/.test(line)) return [];
      const [code = '', reason] = line.replace(/'(?:[^'\\]|\\.)*'|`[^`]*`/g, '').split('//');
      if (!cast.test(code) || reason !== undefined || /\[\w+ in /.test(code)) return []; // in a mapped type it renames keys
      // A type of several lines has it after the last one.
      const isOpen = /[{<(]$/.test(code.trimEnd());
      return isOpen && lines.slice(i + 1, i + 7).some((later) => /^\s*[}>)].*\/\//.test(later))
        ? []
        : [`${path}:${i + 1}: ${line.trim()}`];
    });
  });
  offenders(bare, 'A cast overrules the compiler: the next reader must see why that is right.');
});

test('tidy: names say what a thing is', () => {
  const vague = /(^|[-./])(utils?|helpers?|common|types|lib|services?|managers?|base|impl|data|info|misc)([-./]|$)/;
  const inPaths = listFiles('.ts', '.tsx').filter((path) => vague.test(path) || path !== path.toLowerCase());
  const inNames = product.flatMap(({ path, text }) =>
    [
      ...text.matchAll(/^export (?:const|type|class|function) (\w*(?:Util|Helper|Manager|Service|Impl|Info)s?)\b/gm),
    ].map(([, name]) => `${path} ${name}`),
  );
  offenders([...inPaths, ...inNames], 'Vague or capitalised names: say the noun, in kebab-case for files.');
});

test('tidy: no folder is more than three levels below src', () => {
  offenders(
    sources.map(({ path }) => path).filter((path) => path.split('/').length > (path.includes('/src/') ? 6 : 5)),
    'Depth hides the architecture.',
  );
});

const wordsOf = new Map(sources.map(({ path, text }) => [path, new Set(text.match(/\w+/g))]));

test('tidy: every export is used by another file or offered by its package', () => {
  const offered = new Set(sources.filter(({ path }) => path.endsWith('/index.ts')).flatMap(({ imports }) => imports));
  const unused = product
    .filter(({ path }) => !offered.has(path))
    .flatMap(({ path, text }) =>
      [...text.matchAll(/^export (?:async )?(const|type|class|function\*?) (\w+)/gm)].flatMap(([, kind, name]) => {
        const elsewhere = sources.some((other) => other.path !== path && wordsOf.get(other.path)?.has(name as string));
        // A type may be there to name what its own file's exports take and give.
        const here = kind === 'type' && (text.match(new RegExp(`\\b${name}\\b`, 'g'))?.length ?? 0) > 1;
        return elsewhere || here ? [] : [`${path} ${name}`];
      }),
    );
  offenders(unused, 'An export that nobody imports is dead code, or should not be exported.');
});

const dependenciesOf = (manifest: string): readonly string[] => {
  const manifestJson = readJson(manifest) as Record<string, object>;
  const { dependencies, devDependencies, optionalDependencies, peerDependencies } = manifestJson;
  return Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies, ...peerDependencies });
};

/** The packages that a file may import: its own package's, for tests the root's too; the root's own files see everything. */
const listedFor = (path: string): readonly string[] => {
  const folder = [...packages.keys()].find((name) => path.startsWith(`${name}/`));
  if (folder === undefined)
    return [
      ...packages.values(),
      ...['.', ...packages.keys()].flatMap((name) => dependenciesOf(`${name}/package.json`)),
    ];
  return [
    ...dependenciesOf(`${folder}/package.json`),
    ...(isTest(path) ? [...packages.values(), ...dependenciesOf('package.json')] : []),
  ];
};

test('tidy: no name is exported twice within a package', () => {
  const homes = new Map<string, string[]>();
  // The two files behind `#socket` have one face: bundlers choose between them.
  for (const { path, text } of product.filter(({ path }) => !/\/socket-(node|browser)\.ts$/.test(path)))
    for (const [, name] of text.matchAll(/^export (?:async )?(?:const|type|class|function\*?) (\w+)/gm)) {
      const key = `${path.split('/')[0]} ${name}`;
      homes.set(key, [...(homes.get(key) ?? []), path]);
    }
  offenders(
    [...homes].filter(([, paths]) => new Set(paths).size > 1).map(([name, paths]) => `${name}: ${paths.join(', ')}`),
    'One name, one meaning: the second reader of a name expects the first one’s thing.',
  );
});

test('tidy: each import is listed in its own package', () => {
  const unlisted = sources.flatMap(({ path, imports }) => {
    // What begins with # is in the package itself, under its `imports`.
    const own = path.split('/')[0] as string; // a path has one
    const external = imports
      .map((name) =>
        isTest(path) || name.startsWith(`${own}/`) ? name : (packages.get(name.split('/')[0] ?? '') ?? name),
      )
      .filter((name) => !/^(node:|#)|\.(tsx?|json|css|svg)$/.test(name));
    const names = external.map((name) =>
      name
        .split('/')
        .slice(0, name.startsWith('@') ? 2 : 1)
        .join('/'),
    );
    return names.filter((name) => !listedFor(path).includes(name)).map((name) => `${path}: ${name}`);
  });
  offenders(unlisted, 'A package that leans on another’s dependencies breaks when installed alone.');
});

test('tidy: protocol and client use no Node API, but for the client’s socket in Node', () => {
  const node = product
    .filter(({ path }) => /^(protocol|client)\//.test(path) && path !== 'client/src/stream/socket-node.ts')
    .flatMap(({ path, imports, text }) =>
      [
        ...imports.filter((name) => name.startsWith('node:') || builtinModules.includes(name)),
        ...(text.match(/\b(process|Buffer|require|__dirname)\b\./g) ?? []),
      ].map((name) => `${path}: ${name}`),
    );
  offenders(node, 'Both run in browsers.');
});

test('tidy: no test gives itself less time than all have', () => {
  const least = 300_000; // vitest.config.ts
  const given = /(?:^ *\}, |testTimeout: |hookTimeout: )(\d{2,3}_000)\b/; // not the few seconds of a timer
  const short = sources
    .filter(({ path }) => /\.(test|fuzz)\.ts$/.test(path))
    .flatMap(({ path, text }) =>
      text.split('\n').flatMap((line, i) => {
        const ms = Number(given.exec(line)?.[1]?.replaceAll('_', '') ?? least);
        return ms < least ? [`${path}:${i + 1}`] : [];
      }),
    );
  offenders(short, 'A machine that is busy takes its time; a time-out is for what hangs:');
});

test('tidy: time and randomness are arguments', () => {
  const pure = product.filter(({ path }) => path.startsWith('protocol/'));
  const calls = pure.flatMap(({ path, text }) =>
    (text.match(/\b(Date\.now|new Date\(\)|Math\.random|performance\.now)\b/g) ?? []).map((call) => `${path}: ${call}`),
  );
  offenders(calls, 'Hidden clocks and dice make tests sleep and guess.');
});

test('tidy: every error class is thrown', () => {
  const classes = product.flatMap(({ text }) =>
    [...text.matchAll(/^export class (\w+) extends/gm)].map(([, name]) => name as string),
  );
  const unthrown = classes.filter((name) => !product.some(({ text }) => text.includes(`new ${name}(`)));
  offenders(unthrown, 'An error nobody throws is a promise nobody keeps.');
});

test('tidy: every module opens with what it does', () => {
  offenders(
    product.filter(({ text }) => !text.startsWith('// ')).map(({ path }) => path),
    'The first line of a module says what it does.',
  );
});

test('tidy: the project speaks of itself alone', () => {
  // Spelled in pieces, so that this file passes its own rule.
  const foreign = new RegExp(['\\.\\./sha' + 'red', '\\.libr' + 'ary\\b', 'work/m' + 'ain', 'sub' + 'agent'].join('|'));
  const told = [...sources.map(({ path, text }) => [path, text] as const)].filter(([, text]) => foreign.test(text));
  offenders(
    told.map(([path]) => path),
    'How the work is organised is not part of the project.',
  );
});
