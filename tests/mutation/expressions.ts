// The regular expressions of the sources that are published or served, for a check of what they cost in the worst case.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { transform } from 'esbuild';
import { parseAst } from 'vite';
import { isTest, listFiles, readText } from '../support/source-tree.ts';

export type Expression = { readonly source: string; readonly flags: string; readonly paths: readonly string[] };

/** Sources of the packages: what others run, and what gets bytes from outside. */
export const productSources = (): readonly string[] =>
  listFiles('.ts', '.tsx', '.js').filter((path) => /^\w+\/(src|bin|public)\//.test(path) && !isTest(path));

type Node = {
  readonly type: string;
  readonly regex?: { readonly pattern: string; readonly flags: string };
  readonly callee?: { readonly name?: string };
};

/** Every node of a syntax tree. */
const nodesOf = function* (value: unknown): Generator<Node> {
  if (typeof value !== 'object' || value === null) return;
  if ('type' in value) yield value as Node; // ESTree gives each node a type, and nothing else one
  for (const child of Object.values(value)) yield* nodesOf(child);
};

/** The literals of a source, and how many expressions it makes by `RegExp`, which cannot be checked. */
export const expressionsIn = async (
  path: string,
  text: string,
): Promise<{ readonly literals: readonly RegExp[]; readonly made: number }> => {
  const loader = path.endsWith('x') ? 'tsx' : 'ts'; // JSX is not TypeScript: <T>(a) means something else in each
  const { code } = await transform(text, { loader, jsx: 'automatic', target: 'esnext' });
  const nodes = [...nodesOf(parseAst(code))];
  return {
    literals: nodes.flatMap(({ regex }) => (regex === undefined ? [] : [new RegExp(regex.pattern, regex.flags)])),
    made: nodes.filter(({ type, callee }) => /^(New|Call)Expression$/.test(type) && callee?.name === 'RegExp').length,
  };
};

/** Each expression once, with the files that have it; and the files that make some of text. */
export const listExpressions = async (): Promise<{
  readonly expressions: readonly Expression[];
  readonly making: readonly string[];
}> => {
  const found = new Map<string, { source: string; flags: string; paths: string[] }>();
  const making: string[] = [];
  for (const path of productSources()) {
    const { literals, made } = await expressionsIn(path, readText(path));
    if (made > 0) making.push(path);
    for (const { source, flags } of literals) {
      const one = found.get(`/${source}/${flags}`) ?? { source, flags, paths: [] };
      found.set(`/${source}/${flags}`, one);
      one.paths.push(path);
    }
  }
  return { expressions: [...found.values()], making };
};

type Recheck = {
  readonly checkSync: (
    source: string,
    flags: string,
    options: Readonly<Record<string, null>>,
  ) => { readonly status: 'safe' | 'vulnerable' | 'unknown'; readonly complexity?: { readonly summary: string } };
};

/** Steps are bounded, not times: on a busy machine a pause would make an expression look vulnerable. */
const untimed = { timeout: null, attackTimeout: null, incubationTimeout: null, seedingTimeout: null };

/** What is wrong with an expression, in words; undefined if it takes linear time. */
export const createCheck = (tools: string): ((expression: Omit<Expression, 'paths'>) => string | undefined) => {
  process.env.RECHECK_BACKEND = 'pure'; // JavaScript in this process
  const { checkSync } = createRequire(join(tools, 'package.json'))('recheck') as Recheck; // as it declares it
  return ({ source, flags }) => {
    const { status, complexity } = checkSync(source, flags, untimed);
    return status === 'safe' ? undefined : `/${source}/${flags} is ${status}: ${complexity?.summary ?? 'not decided'}`;
  };
};
