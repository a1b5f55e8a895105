// The command `sealpost`. Runs when it is loaded; no other file touches the process.
import { runProgram } from './program.ts';
import { createSession } from './session.ts';

process.stdout.on('error', () => {}); // whoever writes is told as well, and a reader that has left ends the command there
await runProgram(createSession(process), process.argv.slice(2));
// Whatever a failed command could not close must not keep the process.
setTimeout(() => process.exit(), 5_000).unref();
