// The command line as a whole: every command, the general help, and how a run ends.
import { Command } from 'commander';
import { addCommands, type CommandRow } from './command.ts';
import { accountCommands } from './commands/account/account.ts';
import { secretCommands } from './commands/account/secret.ts';
import { auditCommands } from './commands/audit.ts';
import { candlesCommand } from './commands/candles.ts';
import { listCommands } from './commands/command-tree.ts';
import { createCompletionCommand } from './commands/completion.ts';
import { configCommand } from './commands/config.ts';
import { conformanceCommand } from './commands/conformance/conformance.ts';
import { coverageCommand } from './commands/coverage.ts';
import { demoCommand } from './commands/demo/demo.ts';
import { doctorCommand } from './commands/doctor.ts';
import { exportCommand } from './commands/export/export.ts';
import { followCommand } from './commands/follow/follow.ts';
import { ingestCommand } from './commands/ingest/ingest.ts';
import { initCommand } from './commands/init.ts';
import { loginCommands } from './commands/login.ts';
import { quarantineCommands } from './commands/quarantine.ts';
import { reportCommands } from './commands/report/report.ts';
import { sandboxCommand } from './commands/sandbox/sandbox.ts';
import { serveCommand } from './commands/serve.ts';
import { signCommand } from './commands/sign.ts';
import { signersCommands } from './commands/signers.ts';
import { simulateCommand } from './commands/simulate/simulate.ts';
import { storeCommands } from './commands/store/store.ts';
import { streamCommands } from './commands/stream.ts';
import { watchCommand } from './commands/watch.ts';
import { explainFailure } from './failure.ts';
import { completeHints, givenFlags } from './hints.ts';
import { type Session, withCleanOutput } from './session.ts';
import { readVersion } from './version.ts';

const general = `
Settings come from flags, SEALPOST_… variables, a JSON file and defaults, in this order; sealpost config shows them.

Exit codes:
  0    done
  1    input was rejected, or a check failed
  2    wrong arguments or settings
  3    the store or the network failed
  130  interrupted, after finishing the work in progress

Examples:
  Create a store and load an hour of simulated reports:
    sealpost simulate --from -1h --out ./hour
    sealpost stream import ./hour/catalog.json
    sealpost signers import ./hour/signers.json
    sealpost ingest ./hour/reports.ndjson
    sealpost store stats`;

/** Every command but completion, in the order of the help. */
const commandTable: readonly CommandRow[] = [
  demoCommand,
  sandboxCommand,
  serveCommand,
  simulateCommand,
  initCommand,
  accountCommands,
  secretCommands,
  ...loginCommands,
  reportCommands,
  candlesCommand,
  signCommand,
  doctorCommand,
  conformanceCommand,
  watchCommand,
  ingestCommand,
  followCommand,
  streamCommands,
  signersCommands,
  storeCommands,
  coverageCommand,
  exportCommand,
  quarantineCommands,
  auditCommands,
  configCommand,
];

/** Every command of `sealpost`. Wrong arguments and help end as a CommanderError, after they were printed. */
export const createProgram = (session: Session): Command => {
  const program = new Command('sealpost')
    .description('Verify, store, manage and serve signed price reports.')
    .version(readVersion())
    .addHelpText('after', general)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void session.write(text).catch(() => {}), // help for a reader that has left
      writeErr: (text) => void session.stderr.write(text),
    });
  const completion = createCompletionCommand(() => listCommands(program));
  addCommands(program, [...commandTable, completion], session);
  leadToHelp(program, 'sealpost');
  return program;
};

/** Makes every command end its usage errors with a pointer to its help. */
const leadToHelp = (command: Command, words: string): void => {
  const outputError = (text: string, write: (line: string) => void) =>
    write(`${toOneLine(text)} See: ${words} --help.\n`);
  command.configureOutput({ outputError });
  for (const child of command.commands) leadToHelp(child, `${words} ${child.name()}`);
};

const toOneLine = (text: string): string => text.trim().replaceAll('\n', ' ').replace(/\.?$/, '.');

/** Runs one command to its end. An error becomes one line on stderr and the exit code. */
export const runProgram = async (outer: Session, args: readonly string[]): Promise<void> => {
  const session = withCleanOutput(outer);
  let given: ReturnType<typeof givenFlags> = [];
  const hint = (text: string): string => completeHints(program, given, text);
  const program = createProgram({ ...session, hint });
  program.hook('preAction', (_, command) => {
    given = givenFlags(command);
  });
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    const { exitCode, text } = explainFailure(error);
    if (text !== undefined) session.stderr.write(`error: ${hint(text)}\n`);
    session.exitWith(exitCode);
  }
};
