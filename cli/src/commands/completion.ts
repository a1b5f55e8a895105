// The command `sealpost completion`: a script that completes commands, options and choices, made from the program itself.

import type { PlainCommand } from '../command.ts';
import { usageError } from '../failure.ts';
import type { CommandEntry, OptionEntry, ValueForm } from './command-tree.ts';

const keyOf = ({ path }: CommandEntry): string => path.join(' ');
const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
const namesOf = ({ long, short }: OptionEntry): readonly string[] => [long, ...(short === undefined ? [] : [short])];

/** Options that take a value, as `path --option` patterns of a case, with what completes them. */
const valueCases = (commands: readonly CommandEntry[]): readonly (readonly [patterns: string, value: ValueForm])[] =>
  commands.flatMap((command) =>
    command.options.flatMap((option) =>
      option.value === undefined
        ? []
        : [
            [
              namesOf(option)
                .map((name) => quote(`${keyOf(command)} ${name}`))
                .join('|'),
              option.value,
            ] as const,
          ],
    ),
  );

/** Patterns of a path and the word that extends it. */
const pathPatterns = (commands: readonly CommandEntry[]): string =>
  commands
    .filter(({ path }) => path.length > 0)
    .map((command) => quote(`${command.path.slice(0, -1).join(' ')}|${command.path.at(-1)}`))
    .join('|');

/** Choices of the operands of a command; files where one may be a file. */
const operandForm = ({ operands }: CommandEntry): ValueForm => ({
  choices: operands.flatMap(({ choices }) => choices),
  isFile: operands.some(({ isFile }) => isFile),
});

/** The script of bash 3.2 and later: no associative arrays. */
const renderBash = (commands: readonly CommandEntry[]): string => {
  const reply = ({ choices, isFile }: ValueForm): string =>
    isFile ? '_sealpost_files' : `COMPREPLY=($(compgen -W ${quote(choices.join(' '))} -- "$cur"))`;
  const values = valueCases(commands).map(([patterns, value]) => `    ${patterns}) ${reply(value)}; return ;;`);
  const words = commands.map((command) => {
    const [options, { choices, isFile }] = [command.options.flatMap(namesOf), operandForm(command)];
    const operands = [...command.children.map(({ name }) => name), ...choices];
    const rest = isFile ? '_sealpost_files' : `COMPREPLY=($(compgen -W ${quote(operands.join(' '))} -- "$cur"))`;
    return `    ${quote(keyOf(command))}) if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W ${quote(options.join(' '))} -- "$cur")); else ${rest}; fi ;;`;
  });
  return `# Completion of sealpost for bash. Load it with: source <(sealpost completion bash)
_sealpost_files() {
  compopt -o filenames 2>/dev/null
  local IFS=$'\\n'
  COMPREPLY=($(compgen -f -- "$cur"))
}
_sealpost() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} at= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at|\${COMP_WORDS[i]}" in
      ${pathPatterns(commands)}) at="\${at:+$at }\${COMP_WORDS[i]}" ;;
    esac
  done
  COMPREPLY=()
  case "$at $prev" in
${values.join('\n')}
  esac
  case "$at" in
${words.join('\n')}
  esac
}
complete -F _sealpost sealpost
`;
};

/** The script of zsh, with descriptions. */
const renderZsh = (commands: readonly CommandEntry[]): string => {
  const describe = (name: string, description: string): string =>
    quote(`${name.replaceAll(':', '\\:')}:${description.replaceAll(':', '\\:')}`);
  const reply = ({ choices, isFile }: ValueForm): string =>
    isFile ? '_files' : choices.length > 0 ? `compadd -- ${choices.map(quote).join(' ')}` : ':';
  const values = valueCases(commands).map(([patterns, value]) => `    ${patterns}) ${reply(value)}; return ;;`);
  const words = commands.map((command) => {
    const options = command.options.flatMap((option) =>
      namesOf(option).map((name) => describe(name, option.description)),
    );
    const children = command.children.map(({ name, description }) => describe(name, description));
    const operands =
      children.length > 0 ? `items=(${children.join(' ')}); _describe command items` : reply(operandForm(command));
    return `    ${quote(keyOf(command))}) if [[ $cur == -* ]]; then items=(${options.join(' ')}); _describe option items; else ${operands}; fi ;;`;
  });
  return `#compdef sealpost
# Completion of sealpost for zsh. Write it to a folder of $fpath: sealpost completion zsh > ~/.zfunc/_sealpost
_sealpost() {
  local cur=\${words[CURRENT]} prev=\${words[CURRENT-1]} at= i
  local -a items
  for ((i = 2; i < CURRENT; i++)); do
    case "$at|\${words[i]}" in
      (${pathPatterns(commands)}) at="\${at:+$at }\${words[i]}" ;;
    esac
  done
  case "$at $prev" in
${values.join('\n').replace(/^ {4}/gm, '    (')}
  esac
  case "$at" in
${words.join('\n').replace(/^ {4}/gm, '    (')}
  esac
}
if [[ \${funcstack[1]} == _sealpost ]]; then _sealpost "$@"; else compdef _sealpost sealpost; fi
`;
};

const quoteFish = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

/** The script of fish, with descriptions. */
const renderFish = (commands: readonly CommandEntry[]): string => {
  const lines = commands.flatMap((command) => {
    const at = `complete -c sealpost -n ${quoteFish(`test "$(__sealpost_at)" = "${keyOf(command)}"`)}`;
    const { choices, isFile } = operandForm(command);
    return [
      ...command.children.map(({ name, description }) => `${at} -a ${name} -d ${quoteFish(description)}`),
      ...(choices.length > 0 ? [`${at} -a ${quoteFish(choices.join(' '))}`] : []),
      ...(isFile ? [`${at} -F`] : []),
      ...command.options.map(({ long, short, description, value }) =>
        [
          at,
          `-l ${long.slice(2)}`,
          ...(short === undefined ? [] : [`-s ${short.slice(1)}`]),
          ...(value === undefined ? [] : [value.isFile ? '-r -F' : `-x -a ${quoteFish(value.choices.join(' '))}`]),
          `-d ${quoteFish(description)}`,
        ].join(' '),
      ),
    ];
  });
  return `# Completion of sealpost for fish. Write it to ~/.config/fish/completions/sealpost.fish
function __sealpost_at
  set -l at ''
  for word in (commandline -opc)[2..-1]
    switch "$at|$word"
      case ${commands
        .filter(({ path }) => path.length > 0)
        .map(({ path }) => quoteFish(`${path.slice(0, -1).join(' ')}|${path.at(-1)}`))
        .join(' ')}
        set at (string trim "$at $word")
    end
  end
  echo $at
end
complete -c sealpost -f
${lines.join('\n')}
`;
};

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
