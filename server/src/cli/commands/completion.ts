// The command `sealpost completion`: a script that completes commands, options and choices, made from the program itself.
import { Argument, type Command } from 'commander';
import { addExamples, type RawOptions } from '../command-options.ts';
import { type CommandEntry, listCommands } from '../command-tree.ts';
import { usageError } from '../failure.ts';
import { printJson, type Session } from '../session.ts';
import { renderBash, renderFish, renderZsh } from './completion-scripts.ts';

const scripts: Readonly<Record<string, (commands: readonly CommandEntry[]) => string>> = {
  bash: renderBash,
  zsh: renderZsh,
  fish: renderFish,
};

export const addCompletionCommand = (program: Command, session: Session): void => {
  const shell = new Argument('<SHELL>', 'shell to complete in');
  shell.argChoices = Object.keys(scripts);
  const command = program
    .command('completion')
    .description('Print a completion script for a shell: commands, options and choices.')
    .addArgument(shell)
    .option('--json', 'print all commands and options as one line of JSON')
    .action((name: string, options: RawOptions) => complete(session, program, name, options));
  addExamples(command, [
    ['bash, in ~/.bashrc', 'source <(sealpost completion bash)'],
    ['zsh, in a folder of $fpath', 'sealpost completion zsh > ~/.zfunc/_sealpost'],
    ['fish', 'sealpost completion fish > ~/.config/fish/completions/sealpost.fish'],
  ]);
};

const complete = async (session: Session, program: Command, shell: string, options: RawOptions): Promise<void> => {
  const render = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
  if (render === undefined)
    throw usageError(`SHELL is ${JSON.stringify(shell)}, expected ${Object.keys(scripts).join(', ')}.`);
  const commands = listCommands(program);
  await (options.json ? printJson(session, { shell, commands }) : session.write(render(commands)));
};
