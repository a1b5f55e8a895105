// The command line as a whole: every command, the general help, and how a run ends.
import { Command } from 'commander';
import { addCommands, type CommandRow } from './command.ts';
import { loadCommand, loadCommands } from './commands/command-table.ts';
import { listCommands } from './commands/command-tree.ts';
import { createCompletionCommand } from './commands/completion.ts';
import { explainFailure, hasReaderLeft } from './failure.ts';
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

/** `sealpost` with these commands. Wrong arguments and help end as a CommanderError, after they were printed. */
export function createProgram(
  session: Session,
  rows: readonly CommandRow[],
  writeHelp: (text: string) => void = () => {},
): Command {
  const program = new Command('sealpost')
    .description('Verify, store, manage and serve signed price reports.')
    .version(readVersion())
    .addHelpText('after', general)
    .exitOverride()
    .configureOutput({
      writeOut: writeHelp,
      writeErr: (text) => void session.stderr.write(text),
    });
  const completion = createCompletionCommand(() => listCommands(program));
  addCommands(program, [...rows, completion], session);
  leadToHelp(program, 'sealpost');
  return program;
}

/** Makes every command end its usage errors with a pointer to its help. */
const leadToHelp = (command: Command, words: string): void => {
  const outputError = (text: string, write: (line: string) => void) =>
    write(`${toOneLine(text)} See: ${words} --help.\n`);
  command.configureOutput({ outputError });
  for (const child of command.commands) leadToHelp(child, `${words} ${child.name()}`);
};

const toOneLine = (text: string): string => text.trim().replaceAll('\n', ' ').replace(/\.?$/, '.');

/** What a command line needs: the command that it names, none for the version; help, completion and mistakes need all. */
const commandsFor = async ([name = '']: readonly string[]): Promise<readonly CommandRow[]> => {
  if (name === '--version' || name === '-V') return [];
  const row = await loadCommand(name);
  return row === undefined ? loadCommands() : [row];
};

/** Runs one command to its end. An error becomes one line on stderr and the exit code. */
export async function runProgram(outer: Session, args: readonly string[]): Promise<void> {
  const session = withCleanOutput(outer);
  let given: ReturnType<typeof givenFlags> = [];
  const hint = async (text: string): Promise<string> => {
    if (given.length === 0) return named(text);
    return named(completeHints(createProgram(session, await loadCommands()), given, text));
  };
  // `npx sealpost` and the scripts of npm run without a `sealpost` in the path.
  const named = (text: string): string =>
    session.env.npm_command === undefined
      ? text
      : text.replace(/(?<![\w./@-]|npx )sealpost (?=[a-z])/g, 'npx sealpost ');
  const helped: Promise<unknown>[] = []; // commander does not wait for what it prints
  const writeHelp = (text: string): void => {
    helped.push(session.write(text).catch((error: unknown) => error));
  };
  const program = createProgram({ ...session, hint }, await commandsFor(args), writeHelp);
  program.hook('preAction', (_, command) => {
    given = givenFlags(command);
  });
  const end = async (error: unknown): Promise<void> => {
    if (hasReaderLeft(error)) return; // with the exit code that it has by now
    const { exitCode, text } = explainFailure(error);
    // Code that was upgraded since the start may not load; the error is still told.
    if (text !== undefined) session.stderr.write(`error: ${await hint(text).catch(() => text)}\n`);
    session.exitWith(exitCode);
  };
  await program.parseAsync(args, { from: 'user' }).catch(end);
  const failure = (await Promise.all(helped)).find((one) => one !== undefined);
  if (failure !== undefined) await end(failure);
}
