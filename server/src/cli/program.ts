// Owns the command line as a whole: every command, the general help, and how a run ends.
import { Command } from 'commander';
import { addAccountCommand } from './account-command.ts';
import { addAuditCommand } from './audit-command.ts';
import { addCandlesCommand } from './candles-command.ts';
import { addCompletionCommand } from './completion-command.ts';
import { addConfigCommand } from './config-command.ts';
import { addCoverageCommand } from './coverage-command.ts';
import { addDemoCommand } from './demo-command.ts';
import { addDoctorCommand } from './doctor-command.ts';
import { addEntitleCommand } from './entitle-command.ts';
import { addExportCommand } from './export-command.ts';
import { explainFailure } from './failure.ts';
import { addFollowCommand } from './follow-command.ts';
import { completeHints, givenFlags } from './hints.ts';
import { addIngestCommand } from './ingest-command.ts';
import { addInitCommand } from './init-command.ts';
import { addLoginCommands } from './login-command.ts';
import { addQuarantineCommand } from './quarantine-command.ts';
import { addReportCommand } from './report-command.ts';
import { addSecretCommand } from './secret-command.ts';
import { addServeCommand } from './serve-command.ts';
import { type Session, withCleanOutput } from './session.ts';
import { addSignCommand } from './sign-command.ts';
import { addSignersCommand } from './signers-command.ts';
import { addStoreCommand } from './store-command.ts';
import { addStreamCommand } from './stream-command.ts';
import { readVersion } from './version.ts';
import { addWatchCommand } from './watch-command.ts';

const general = `
Settings come from flags, SEALPOST_… variables, a JSON file and defaults, in this order; sealpost config shows them.

Exit codes:
  0    done
  1    input was rejected, or a check failed
  2    wrong arguments or settings
  3    the store or the network failed
  130  interrupted; what was under way is finished

Examples:
  A first store, filled with an hour of simulated reports:
    sealpost-sim --from -1h --out ./hour
    sealpost stream import ./hour/catalog.json
    sealpost signers import ./hour/signers.json
    sealpost ingest ./hour/reports.ndjson
    sealpost store stats`;

/** Every command of `sealpost`. Wrong arguments and help end as a CommanderError, after they were printed. */
export const createProgram = (session: Session): Command => {
  const program = new Command('sealpost')
    .description('Signed price reports: verify, store, look after and deliver them.')
    .version(readVersion())
    .addHelpText('after', general)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void session.write(text).catch(() => {}), // help for a reader that has left
      writeErr: (text) => void session.stderr.write(text),
    });
  addDemoCommand(program, session);
  addServeCommand(program, session);
  addInitCommand(program, session);
  addAccountCommand(program, session);
  addSecretCommand(program, session);
  addEntitleCommand(program, session);
  addLoginCommands(program, session);
  addReportCommand(program, session);
  addCandlesCommand(program, session);
  addSignCommand(program, session);
  addDoctorCommand(program, session);
  addWatchCommand(program, session);
  addIngestCommand(program, session);
  addFollowCommand(program, session);
  addStreamCommand(program, session);
  addSignersCommand(program, session);
  addStoreCommand(program, session);
  addCoverageCommand(program, session);
  addExportCommand(program, session);
  addQuarantineCommand(program, session);
  addAuditCommand(program, session);
  addConfigCommand(program, session);
  addCompletionCommand(program, session);
  leadToHelp(program, 'sealpost');
  return program;
};

/** Has every command end an error with the way to its own help. */
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
