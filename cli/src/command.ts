// A command is a row of a table: name, arguments, options, settings, examples, run. This is the one place that makes commander commands of rows; it
// reads the settings, opens and closes the store, and prints results.

import { type ResolvedSettings, type SettingName, type Settings, settingsTable } from '@sealpost/server/config/config';
import type { Store } from '@sealpost/server/store/store';
import { Argument, type Command, Option } from 'commander';
import { type RawOptions, readSettings } from './command-options.ts';
import { printJson, type Session } from './session.ts';
import { withNewStore, withStore } from './store-access.ts';

export type ArgumentRow = {
  /** `<NAME>`, `[NAME]` if optional, `[NAME...]` for several. */
  readonly name: string;
  readonly help: string;
  readonly default?: string;
  /** For help and completion. */
  readonly choices?: readonly string[];
};

export type OptionRow = {
  readonly flag: string;
  readonly help: string;
  readonly required?: true;
  /** May be given several times: see `collected`. */
  readonly repeatable?: true;
  readonly default?: string;
  /** For help and completion. Commands check the value themselves, for the wording of the error. */
  readonly choices?: readonly string[];
};

type Act<T> = (store: Store) => Promise<T>;

/** What a command gets. */
export type Call = {
  readonly session: Session;
  readonly options: RawOptions;
  /** Prints the value as one line of JSON if --json is set, otherwise the text. */
  readonly print: (value: unknown, text: string) => Promise<void>;
};

/** What a command with settings gets as well. */
export type SettingsCall = Call & {
  readonly settings: Settings;
  /** The same with their sources. */
  readonly resolved: ResolvedSettings;
  /** Opens a store, that of the settings unless `url` is given, for reading reports and changing administrative records; closes it after the act. */
  readonly withStore: <T>(act: Act<T>, url?: string) => Promise<T>;
  /** The same for the store of the settings, creating it if it does not exist. */
  readonly withNewStore: <T>(act: Act<T>) => Promise<T>;
};

type Row = {
  readonly name: string;
  readonly summary: string;
  readonly arguments?: readonly ArgumentRow[];
  readonly options?: readonly OptionRow[];
  /** Help after the options. */
  readonly about?: string;
  readonly examples: readonly (readonly [purpose: string, line: string])[];
};

/** A command that reads no settings, or only sometimes. */
export type PlainCommand = Row & {
  readonly settings?: undefined;
  readonly run: (call: Call, ...args: never[]) => Promise<void>;
  /** Commands under its name, besides what it does itself. */
  readonly subcommands?: readonly CommandRow[];
};

/** A command whose settings have flags, and are read before it runs. */
export type SettingsCommand = Row & {
  readonly settings: readonly SettingName[];
  readonly run: (call: SettingsCall, ...args: never[]) => Promise<void>;
};

/** Commands under one word. */
export type CommandGroup = {
  readonly name: string;
  readonly summary: string;
  readonly commands: readonly CommandRow[];
};

export type CommandRow = PlainCommand | SettingsCommand | CommandGroup;

/** Adds the commands of rows to a program or a group. */
export function addCommands(parent: Command, rows: readonly CommandRow[], session: Session): void {
  parent.enablePositionalOptions(); // after the name of a command, an option is its own: `sandbox` and `sandbox show` both have --json
  for (const row of rows) {
    const command = parent.command(row.name).description(row.summary);
    if ('commands' in row) addCommands(command, row.commands, session);
    else describeCommand(command, row).action(createAction(row, session));
    if ('subcommands' in row) addCommands(command, row.subcommands ?? [], session);
  }
}

const describeCommand = (command: Command, row: PlainCommand | SettingsCommand): Command => {
  const { arguments: args = [], options = [], settings, about, examples } = row;
  for (const argument of args) command.addArgument(toArgument(argument));
  for (const option of [...options, ...(settings === undefined ? [] : settingOptions(settings))])
    command.addOption(toOption(option));
  if (about !== undefined) command.addHelpText('after', `\n${about}`);
  const lines = examples.map(([purpose, line]) => `  ${purpose}:\n    ${line}`);
  return command.addHelpText('after', `\nExamples:\n${lines.join('\n')}`);
};

const toArgument = ({ name, help, default: fallback, choices }: ArgumentRow): Argument => {
  const argument = new Argument(name, help);
  if (fallback !== undefined) argument.default(fallback);
  if (choices !== undefined) argument.argChoices = [...choices];
  return argument;
};

const toOption = ({ flag, help, required, repeatable, default: fallback, choices }: OptionRow): Option => {
  const option = new Option(flag, help);
  if (required) option.makeOptionMandatory();
  if (repeatable) option.argParser((value, previous: readonly string[] = []) => [...previous, value]);
  if (fallback !== undefined) option.default(fallback);
  if (choices !== undefined) option.argChoices = [...choices];
  return option;
};

/** The flags of settings, and --config. `defaults` are those of one command. */
export const settingOptions = (
  names: readonly SettingName[],
  defaults: Readonly<Partial<Record<SettingName, string>>> = {},
): readonly OptionRow[] => [
  ...names.flatMap((name): readonly OptionRow[] => {
    const row = settingsTable[name];
    const text = defaults[name] ?? row.defaultText;
    const origin = text === undefined ? `$${row.env}` : `$${row.env}, default: ${text}`;
    if (row.flag === undefined) return [];
    return [{ flag: row.flag, help: `${row.help} (${origin})`, ...('choices' in row && { choices: row.choices }) }];
  }),
  { flag: '--config <file>', help: 'JSON file with settings ($SEALPOST_CONFIG)' },
];

/** Commander calls an action with the arguments, the options and the command. */
const createAction =
  (row: PlainCommand | SettingsCommand, session: Session) =>
  async (...given: unknown[]): Promise<void> => {
    const args = given.slice(0, -2) as never[]; // as the arguments of the row say
    const options = given.at(-2) as RawOptions; // commander's
    const print: Call['print'] = (value, text) => (options.json ? printJson(session, value) : session.write(text));
    const call: Call = { session, options, print };
    if (row.settings === undefined) return row.run(call, ...args);
    const resolved = await readSettings(session, options);
    const { store } = resolved.values;
    await row.run(
      {
        ...call,
        settings: resolved.values,
        resolved,
        withStore: (act, url = store) => withStore(url, act),
        withNewStore: (act) => withNewStore(store, act),
      },
      ...args,
    );
  };
