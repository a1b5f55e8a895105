// The command `sealpost`. Runs when it is loaded; no other file touches the process.
import '@sealpost/server/runtime/one-core';

import { runProgram } from './program.ts';
import { createSession } from './session.ts';

process.stdout.on('error', () => {}); // a write also rejects, and that ends the command if the reader has closed stdout
process.stderr.on('error', () => {}); // what cannot be told, because a disk is full or nobody listens, must not end what is being done
await runProgram(createSession(process), process.argv.slice(2));
// What a failed command could not close must not keep the process alive.
setTimeout(() => process.exit(), 5_000).unref();
