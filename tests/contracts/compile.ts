// Compiles contracts/ and the published verifier contracts with solc. One run for both: loading the compiler takes seconds.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, normalize } from 'node:path';
import type { Hex } from '@sealpost/protocol';
import type * as Abi from 'ox/Abi';
import { root } from '../support/source-tree.ts';

export type Compiled = {
  readonly abi: Abi.Abi;
  readonly bytecode: Hex;
  /** NatSpec of every function and error. */
  readonly userdoc: { readonly methods?: object; readonly errors?: object };
};

const require = createRequire(import.meta.url);

const published = 'published/src/v0.8/llo-feeds/v0.5.0';
const publishedRoot = dirname(require.resolve('@chainlink/contracts/package.json'));

const readOurs = (): Readonly<Record<string, string>> =>
  Object.fromEntries(
    readdirSync(join(root, 'contracts'))
      .filter((name) => name.endsWith('.sol'))
      .map((name) => [`contracts/${name}`, readFileSync(join(root, 'contracts', name), 'utf8')]),
  );

/** A published source and what it imports. They ask for solc 0.8.19; this one compiles them too. */
const readPublished = (path: string, found: Record<string, string> = {}): Readonly<Record<string, string>> => {
  if (found[path] !== undefined) return found;
  const text = readFileSync(join(publishedRoot, path.slice('published/'.length)), 'utf8');
  found[path] = text.replace(/^pragma solidity 0\.8\.19;/m, 'pragma solidity ^0.8.19;');
  for (const [, name = ''] of text.matchAll(/^import .*"(\.[^"]+)";/gm))
    readPublished(normalize(join(dirname(path), name)), found);
  return found;
};

type Output = {
  readonly errors?: readonly { readonly severity: string; readonly formattedMessage: string }[];
  readonly contracts: Readonly<
    Record<string, Readonly<Record<string, { abi: Abi.Abi; userdoc: object; evm: { bytecode: { object: string } } }>>>
  >;
};

const cache = join(root, 'node_modules/.cache/sealpost-solc');
export const { version: compilerVersion }: { readonly version: string } = require('solc/package.json');

/** Compiling takes 8 s of CPU; the same input gives the same output. */
const compileOnce = (input: string): Output => {
  const file = join(cache, `${createHash('sha256').update(compilerVersion).update(input).digest('hex')}.json`);
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    const solc: { readonly compile: (input: string) => string } = require('solc');
    const output = solc.compile(input);
    mkdirSync(cache, { recursive: true });
    writeFileSync(file, output);
    return JSON.parse(output);
  }
};

/** Compiles everything; throws on an error, and on a warning about our own contracts. */
export const compileAll = () => {
  const reentrant = 'tests/contracts/ReentrantVerifier.sol';
  const tutorial = 'tests/contracts/TutorialConsumer.sol';
  const sources = {
    ...readOurs(),
    [reentrant]: readFileSync(join(root, reentrant), 'utf8'),
    [tutorial]: readFileSync(join(root, tutorial), 'utf8'),
    ...readPublished(`${published}/Verifier.sol`),
    ...readPublished(`${published}/VerifierProxy.sol`),
  };
  const settings = {
    optimizer: { enabled: true, runs: 10_000 },
    evmVersion: 'paris', // runs on every chain, also on those without PUSH0
    metadata: { appendCBOR: false, bytecodeHash: 'none' }, // a changed comment does not change the bytecode
    outputSelection: { '*': { '*': ['abi', 'userdoc', 'evm.bytecode.object'] } },
  };
  const input = {
    language: 'Solidity',
    sources: Object.fromEntries(Object.entries(sources).map(([path, content]) => [path, { content }])),
    settings,
  };
  const output = compileOnce(JSON.stringify(input));
  const problems = (output.errors ?? []).filter(
    ({ severity, formattedMessage }) => severity === 'error' || formattedMessage.includes('--> contracts/'),
  );
  if (problems.length > 0) throw new Error(problems.map(({ formattedMessage }) => formattedMessage).join('\n'));
  const contract = (path: string, name: string): Compiled => {
    const found = output.contracts[path]?.[name];
    if (found === undefined) throw new Error(`${path} has no contract ${name}.`);
    return { abi: found.abi, userdoc: found.userdoc, bytecode: `0x${found.evm.bytecode.object}` };
  };
  return {
    verifier: contract('contracts/ReportVerifier.sol', 'ReportVerifier'),
    settlement: contract('contracts/TradeSettlement.sol', 'TradeSettlement'),
    reentrantVerifier: contract(reentrant, 'ReentrantVerifier'),
    tutorialConsumer: contract(tutorial, 'TutorialConsumer'),
    publishedVerifier: contract(`${published}/Verifier.sol`, 'Verifier'),
    publishedProxy: contract(`${published}/VerifierProxy.sol`, 'VerifierProxy'),
  };
};
