// Bundles the workloads and runs them, with the arguments of the command line.
import { spawn } from 'node:child_process';
import { bundle } from './bundle.ts';
import { profileFlags } from './processes/target.ts';

const { programOf, remove } = await bundle('data-bench-', [
  'bench/run.ts',
  'bench/programs/recovery-thread.ts',
  'bench/programs/http-target.ts',
  'bench/programs/live-target.ts',
  'server/src/cluster/worker.ts',
  'bench/programs/postgres-follower.ts',
  'bench/programs/peer-target.mjs',
  'bench/programs/explorer-target.ts',
]);
// Workloads without processes of their own run in this one; for the others it sends the load.
const child = spawn(process.execPath, [...profileFlags(), programOf('run'), ...process.argv.slice(2)], {
  stdio: 'inherit',
});
child.once('exit', (code) => {
  remove();
  process.exitCode = code ?? 1;
});
