// Browsers pay for every byte: the bundles stay under their bounds.
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { root } from './source-tree.ts';

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

test('size: the whole protocol package stays under 35 KB gzipped', async () => {
  const bytes = await gzippedBytes("export * from '@sealpost/protocol'");
  expect(bytes).toBeGreaterThan(20_000);
  expect(bytes).toBeLessThan(35_000);
});

test('size: signing alone stays under 10 KB gzipped, from its own door or from the front', async () => {
  expect(await gzippedBytes("export { signRequest } from '@sealpost/protocol/request-signing'")).toBeLessThan(10_000);
  expect(await gzippedBytes("export { signRequest } from '@sealpost/protocol'")).toBeLessThan(10_000);
});

test('size: a client with latest and stream stays under 25 KB gzipped in a browser, and has no ABI or curve code', async () => {
  const bundle = await bundled(
    "import { createClient } from '@sealpost/client'; const { latest, stream } = createClient({ baseUrl: location.origin }); export { latest, stream }",
  );
  expect(gzipSync(bundle.contents, { level: 9 }).length).toBeLessThan(25_000);
  expect(bundle.sources.filter((path) => /abi-words|secp256k1|curves|socket-node/.test(path))).toEqual([]);
});

test('size: decoding and verifying stay under 25 KB gzipped', async () => {
  expect(await gzippedBytes("export { decode, verify } from '@sealpost/client'")).toBeLessThan(25_000);
});
