// Bundles the workloads and runs them: through a loader every closure costs a name, and figures would be those of the loader.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = mkdtempSync(`${root}data-bench-`);
await build({
  entryPoints: [
    'bench/run.ts',
    'bench/recovery-thread.ts',
    'bench/http-target.ts',
    'server/src/store/lmdb-writer-thread.ts',
    'server/src/ingest/verifier-thread.ts',
  ].map((entry) => `${root}${entry}`),
  outdir: folder,
  entryNames: '[name]',
  outExtension: { '.js': '.mjs' },
  bundle: true,
  format: 'esm',
  platform: 'node',
  external: ['lmdb', 'pino', 'prom-client', 'node:*'],
  conditions: ['source'],
});
const child = spawn(process.execPath, [`${folder}/run.mjs`, ...process.argv.slice(2)], { stdio: 'inherit' });
child.once('exit', (code) => {
  rmSync(folder, { recursive: true, force: true });
  process.exitCode = code ?? 1;
});
