// Bundles the workloads and runs them, with the arguments of the command line.
import { spawn } from 'node:child_process';
import { bundle } from './bundle.ts';

const { programOf, remove } = await bundle('data-bench-', [
  'bench/run.ts',
  'bench/recovery-thread.ts',
  'bench/http-target.ts',
  'bench/live-target.ts',
  'bench/explorer-target.ts',
  'bench/blocking-target.ts',
]);
const child = spawn(process.execPath, [programOf('run'), ...process.argv.slice(2)], { stdio: 'inherit' });
child.once('exit', (code) => {
  remove();
  process.exitCode = code ?? 1;
});
