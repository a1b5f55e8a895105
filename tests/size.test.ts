// Browsers pay for every byte: the bundles stay under their bounds.
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { root } from './support/source-tree.ts';

/** A browser's bundle, and the files that something in it comes from. */
const bundled = async (source: string): Promise<{ contents: Uint8Array; sources: readonly string[] }> => {
  const { outputFiles, metafile } = await build({
    stdin: { contents: source, resolveDir: root, loader: 'ts' },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    conditions: ['source'],
    metafile: true,
  });
  const inputs = Object.values(metafile.outputs).flatMap((output) => Object.entries(output.inputs));
  const sources = inputs.filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([path]) => path);
  return { contents: outputFiles[0]?.contents ?? new Uint8Array(), sources };
};

const gzippedBytes = async (source: string): Promise<number> =>
  gzipSync((await bundled(source)).contents, { level: 9 }).length;

/** What a page loads to do this, in bytes gzipped at most. The figures are in client/README.md; docs and bounds move together. */
const bounds: readonly (readonly [what: string, source: string, max: number])[] = [
  ['the whole protocol package', "export * from '@sealpost/protocol'", 28_100],
  ['signing alone', "export { signRequest } from '@sealpost/protocol/request-signing'", 1_150],
  ['signing alone, from the front', "export { signRequest } from '@sealpost/protocol'", 1_150],
  ['the client', "export { createClient } from '@sealpost/client'", 22_300],
  ['the client, decoding and verifying', "export { createClient, decode, verify } from '@sealpost/client'", 37_900],
  ['decoding and verifying', "export { decode, verify } from '@sealpost/client'", 17_800],
  ['the calls latest and stream', "export { latest, openRequester, stream } from '@sealpost/client/calls'", 16_600],
  ['the call latest', "export { latest, openRequester } from '@sealpost/client/calls'", 8_900],
  [
    'the calls latest and stream, decoding and verifying',
    "export { latest, openRequester, stream } from '@sealpost/client/calls'; export { decode, verify } from '@sealpost/client'",
    32_500,
  ],
  ['calldata of verify', "export { verifyCalldata } from '@sealpost/client/onchain'", 3_500],
  ['everything on-chain', "export * from '@sealpost/client/onchain'", 6_700],
];

test.each(bounds)('size: %s', async (_, source, max) => {
  const bytes = await gzippedBytes(source);
  expect(bytes).toBeLessThan(max);
  expect(bytes).toBeGreaterThan(max * 0.9); // a bound that is far away binds nothing
});

test('size: what reads and streams has no ABI, curve or Node code', async () => {
  const { sources } = await bundled("export { createClient } from '@sealpost/client'");
  expect(sources.filter((path) => /abi-words|secp256k1|curves|noble|socket-node/.test(path))).toEqual([]);
  expect(sources.length).toBeGreaterThan(30);
});

test('size: what verifies has no code that signs, and no hash but keccak', async () => {
  const { sources } = await bundled("export { verify } from '@sealpost/client'");
  expect(sources.filter((path) => /sha2|hmac|der\.js|secp256k1\.js/.test(path))).toEqual([]);
  expect(sources.some((path) => path.includes('weierstrass'))).toBe(true);
});
