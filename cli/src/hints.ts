// Completes the commands that messages suggest: a suggested command carries the flags that the user gave, where it takes them, so that it
// acts on the same store and the same server.

import { hidePassword } from '@sealpost/server/runtime/urls';
import type { Command } from 'commander';

/** Flags that say where a command acts, and not what it does. */
const placeFlags = [
  '--store',
  '--config',
  '--key-file',
  '--network',
  '--dir',
  '--url',
  '--profile',
  '--profiles',
] as const;

/** The flags of this kind on a command line, with their values. */
export const givenFlags = (command: Command): readonly (readonly [flag: string, value: string])[] =>
  placeFlags.flatMap((flag) => {
    const option = command.options.find(({ long }) => long === flag);
    if (option === undefined || command.getOptionValueSource(option.attributeName()) !== 'cli') return [];
    return [[flag, hidePassword(String(command.getOptionValue(option.attributeName())))] as const];
  });

/** The text, with every command that it suggests completed. */
export const completeHints = (program: Command, given: ReturnType<typeof givenFlags>, text: string): string =>
  given.length === 0
    ? text
    : text.replace(/(?<=\bsealpost )[a-z]\S*(?: \S+)*/g, (rest) => {
        const command = suggestedCommand(rest.split(' '));
        return `${command}${missingFlags(program, given, command)}${completeHints(program, given, rest.slice(command.length))}`;
      });

// A command ends with its sentence, or where prose continues: at a lowercase word that is neither a command's name nor a flag's value.
const suggestedCommand = (words: readonly string[]): string => {
  const stop = words.findIndex((word, i) => {
    const isProse = i > 1 && /^[a-z]+$/.test(word) && !words[i - 1]?.startsWith('-');
    return isProse || /[.,;:)]$/.test(words[i - 1] ?? '');
  });
  return words
    .slice(0, stop === -1 ? words.length : stop)
    .join(' ')
    .replace(/[.,;:)]{1,9}$/, '');
};

const missingFlags = (program: Command, given: ReturnType<typeof givenFlags>, words: string): string => {
  const parts = words.split(' ');
  let command: Command | undefined = program;
  for (const part of parts) {
    const child: Command | undefined = command.commands.find((one) => one.name() === part);
    if (child === undefined) break;
    command = child;
  }
  const isAllowed = (flag: string): boolean =>
    command !== program &&
    command.options.some(({ long }) => long === flag) &&
    !parts.includes(flag) &&
    !parts.includes('--help') &&
    !(flag === '--store' && (parts.includes('--to') || parts.includes('--url'))); // these go to a server instead
  return given
    .filter(([flag]) => isAllowed(flag))
    .map(([flag, value]) => ` ${flag} ${quote(value)}`)
    .join('');
};

/** Quoted for a shell. */
export const quote = (text: string): string =>
  /^[\w@%+=:,./~-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
