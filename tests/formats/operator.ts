// An operator of a deployment: the commands of one release on one store, and its server.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand as runHere } from '../../cli/src/sample-session.fixture.ts';
import { runCommand, type Server, startServer } from '../support/real-program.ts';
import { ingestToken } from './senders.ts';

export type Operator = {
  /** For files of the operator's own. */
  readonly folder: string;
  readonly store: string;
  readonly keyFile: string;
  /** Runs a command to its end, and gives its standard output; rejects where it does not end with the code. */
  readonly run: (args: readonly string[], code?: number) => Promise<string>;
  readonly runJson: (...args: string[]) => Promise<unknown>;
  readonly serve: (...args: string[]) => Promise<Server>;
};

/** The reports of a release are read for years. */
const retention = '36500';

/** `command` is that of another release; by itself it is this one's, whose commands need no process of their own. */
export const createOperator = (folder: string, store: string, keyFile: string, command?: string): Operator => {
  const env = {
    SEALPOST_STORE: store,
    SEALPOST_KEY_FILE: keyFile,
    SEALPOST_RETENTION_DAYS: retention,
    SEALPOST_INGEST_TOKEN: ingestToken,
  };
  const run = async (args: readonly string[], expected = 0): Promise<string> => {
    const running =
      command === undefined ? runHere(args, { cwd: folder, env }) : runCommand(args, folder, env, command);
    const { code, stdout, stderr } = await running;
    if (code !== expected) throw new Error(`sealpost ${args.join(' ')} ended with ${code}: ${stdout}${stderr}`);
    return stdout;
  };
  const of = command === undefined ? {} : { command };
  return {
    folder,
    store,
    keyFile,
    run,
    runJson: async (...args) => parseLines(await run([...args, '--json'])),
    serve: (...args) => startServer({ folder, store, keyFile, ...of }, ['--explorer', 'off', ...args], env),
  };
};

/** The values of a text with one on each line; the only one by itself. */
const parseLines = (text: string): unknown => {
  const values = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown);
  return values.length === 1 ? values[0] : values;
};

/** Stores lines by the command; `code` is 1 where some are to be rejected. */
export const ingestLines = async ({ folder, run }: Operator, lines: readonly string[], code = 0): Promise<void> => {
  const file = join(folder, 'lines.ndjson');
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
  await run(['ingest', file], code);
};
