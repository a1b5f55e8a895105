// Browsers pay for every byte: the bundles stay under their bounds.
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { root } from './source-tree.ts';

const gzippedBytes = async (source: string): Promise<number> => {
  const { outputFiles } = await build({
    stdin: { contents: source, resolveDir: root, loader: 'ts' },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    conditions: ['source'],
  });
  return gzipSync(outputFiles[0]?.contents ?? '', { level: 9 }).length;
};

test('size: the whole protocol package stays under 60 KB gzipped', async () => {
  const bytes = await gzippedBytes("export * from '@sealpost/protocol'");
  expect(bytes).toBeGreaterThan(20_000);
  expect(bytes).toBeLessThan(60_000);
});

test('size: signing alone stays under 10 KB gzipped, from its own door or from the front', async () => {
  expect(await gzippedBytes("export { signRequest } from '@sealpost/protocol/request-signing'")).toBeLessThan(10_000);
  expect(await gzippedBytes("export { signRequest } from '@sealpost/protocol'")).toBeLessThan(10_000);
});
