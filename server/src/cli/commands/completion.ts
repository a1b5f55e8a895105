// The command `sealpost completion`: a script that completes commands, options and choices, made from the program itself.

import type { PlainCommand } from '../command.ts';
import { usageError } from '../failure.ts';
import type { CommandEntry } from './command-tree.ts';
import { renderBash, renderFish, renderZsh } from './completion-scripts.ts';

const scripts: Readonly<Record<string, (commands: readonly CommandEntry[]) => string>> = {
  bash: renderBash,
  zsh: renderZsh,
  fish: renderFish,
};

/** Completes the commands of a program, whose entries are read when the command runs. */
export const createCompletionCommand = (entries: () => readonly CommandEntry[]): PlainCommand => ({
  name: 'completion',
  summary: 'Print a completion script for a shell: commands, options and choices.',
  arguments: [{ name: '<SHELL>', help: 'shell to complete in', choices: Object.keys(scripts) }],
  options: [{ flag: '--json', help: 'print all commands and options as one line of JSON' }],
  examples: [
    ['bash, in ~/.bashrc', 'source <(sealpost completion bash)'],
    ['zsh, in a folder of $fpath', 'sealpost completion zsh > ~/.zfunc/_sealpost'],
    ['fish', 'sealpost completion fish > ~/.config/fish/completions/sealpost.fish'],
  ],
  run: async ({ print }, shell: string) => {
    const render = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
    if (render === undefined)
      throw usageError(`SHELL is ${JSON.stringify(shell)}, expected ${Object.keys(scripts).join(', ')}.`);
    const commands = entries();
    await print({ shell, commands }, render(commands));
  },
});
