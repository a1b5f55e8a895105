// The commands of the program as plain values, for what is generated from them: shell completion.
import type { Argument, Command, Option } from 'commander';

/** What completes an argument or the value of an option. */
export type ValueForm = { readonly choices: readonly string[]; readonly isFile: boolean };

export type OptionEntry = {
  readonly long: string;
  readonly short: string | undefined;
  readonly description: string;
  /** Undefined for a switch. */
  readonly value: ValueForm | undefined;
};

export type CommandEntry = {
  /** Words after `sealpost`; empty for the program itself. */
  readonly path: readonly string[];
  readonly description: string;
  readonly children: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly OptionEntry[];
  /** The last one may be repeated. */
  readonly operands: readonly ValueForm[];
};

const filePattern = /file|dir|folder/i;

const formOf = (name: string, choices: readonly string[] | undefined): ValueForm => ({
  choices: choices ?? [],
  isFile: choices === undefined && filePattern.test(name),
});

const toOption = ({ long, short, description, flags, required, optional, argChoices }: Option): OptionEntry => ({
  long: long ?? '',
  short,
  description: summarize(description),
  value: required || optional ? formOf(/[<[]([^>\]]+)/.exec(flags)?.[1] ?? '', argChoices) : undefined,
});

const toOperand = (argument: Argument): ValueForm => formOf(argument.name(), argument.argChoices);

/** The first sentence, on one line, without what is in brackets. */
const summarize = (text: string): string =>
  text
    .replace(/\s?\([^()]*\)/g, '')
    .split(/[.;:](?:\s|$)/, 1)
    .join('')
    .replace(/\s+/g, ' ')
    .trim();

/** Every command, the program first. */
export const listCommands = (command: Command, path: readonly string[] = []): readonly CommandEntry[] => [
  {
    path,
    description: summarize(command.description()),
    children: command.commands.map((child) => ({ name: child.name(), description: summarize(child.description()) })),
    options: [...command.createHelp().visibleOptions(command)].map(toOption),
    operands: command.registeredArguments.map(toOperand),
  },
  ...command.commands.flatMap((child) => listCommands(child, [...path, child.name()])),
];
