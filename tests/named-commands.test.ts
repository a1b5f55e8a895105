// Every command that a message, an example or a document names exists, with its options; those to start a deployment with are run.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Command, CommanderError } from 'commander';
import { afterAll, expect, test } from 'vitest';
import { loadCommands } from '../cli/src/commands/command-table.ts';
import { createProgram } from '../cli/src/program.ts';
import { createSession } from '../cli/src/session.ts';
import { runCommand, sealpost, startProgram } from './support/real-program.ts';
import { isTest, listFiles, readText } from './support/source-tree.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-named-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const program = createProgram(
  { ...createSession(process), stderr: { write: () => true } } as never,
  await loadCommands(),
); // it prints nothing else

/** Commands check what they get, and then do nothing. */
const disarm = (command: Command): void => {
  if (command.commands.length === 0 || command.options.length > 0) command.action(() => {});
  command.commands.forEach(disarm);
};
disarm(program);

/** The commands in a line for a shell, as the words after `sealpost`. */
const commandsIn = (line: string): readonly (readonly string[])[] =>
  [
    ...line.matchAll(
      /(?<=(?:^|[|&;(])\s*(?:\w+=\S* )?(?:npx )?)sealpost ((?:"[^"]*"|'[^']*'|\$\([^)]*\)|[^|&;<>#)"'])+)/g,
    ),
  ].map(([, words = '']) =>
    (words.trim().match(/(?:"[^"]*"|'[^']*'|\$\([^)]*\)|\S)+/g) ?? []).map((word) => word.replaceAll(/["']/g, '')),
  );

/** Why the program would reject a command; undefined if it would not. */
const rejection = async (words: readonly string[]): Promise<string | undefined> => {
  try {
    await program.parseAsync([...words], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode !== 0) return `sealpost ${words.join(' ')}: ${error.message}`;
  }
  return undefined;
};

const documents = listFiles('.md').filter((path) => path !== 'CHANGELOG.md');
const shellLines = documents.flatMap((path) =>
  [...readText(path).matchAll(/^```(?:sh|bash)\n([\s\S]*?)^```/gm)].flatMap(([, block = '']) =>
    block.replaceAll('\\\n', ' ').split('\n'),
  ),
);
const help = (command: Command): string => {
  let text = '';
  command
    .configureOutput({
      writeOut: (part) => {
        text += part;
      },
    })
    .outputHelp();
  return text.split('\nExamples:')[1] ?? '';
};
const allCommands = (command: Command): readonly Command[] => [command, ...command.commands.flatMap(allCommands)];
const examples = allCommands(program).flatMap((command) => help(command).replaceAll('\\\n', ' ').split('\n'));

test('named commands: those in the documents’ shell blocks and in the examples of --help are accepted as written', async () => {
  const commands = [...shellLines, ...examples].flatMap(commandsIn);
  expect(commands.length).toBeGreaterThan(120);
  const rejections = [];
  for (const words of commands) rejections.push(await rejection(words));
  expect(rejections.filter((one) => one !== undefined)).toEqual([]);
});

/** What is wrong with a command that a text names, perhaps in the middle of a sentence. */
const mistake = (text: string, isCode: boolean): string | undefined => {
  const words = text
    .replace(/ \| .*/, '')
    .replaceAll(/[[\]|]/g, ' ')
    .trim()
    .split(/\s+/);
  let command = program;
  for (const word of words) {
    const child = command.commands.find((one) => one.name() === word.replace(/[.,;:)]+$/, ''));
    if (child === undefined) {
      const isGroup = command.commands.length > 0 && command.options.length === 0 && command !== program;
      if ((isCode && command === program && !word.startsWith('--')) || (isGroup && /^[a-z-]+$/.test(word)))
        return `sealpost ${text}: no command ${word}`;
      break;
    }
    command = child;
    if (/[.,;:)]$/.test(word)) return undefined;
  }
  if (command === program) return undefined;
  const end = words.findIndex((word) => /[.,;:)]$/.test(word));
  const options = (end === -1 ? words : words.slice(0, end + 1)).flatMap(
    (word) => /^--?[a-z][a-z-]*/.exec(word)?.[0] ?? [],
  );
  const unknown = options.filter(
    (name) => name !== '--help' && !command.options.some(({ long, short }) => name === long || name === short),
  );
  return unknown.length === 0 ? undefined : `sealpost ${text}: no option ${unknown}`;
};

test('named commands: those in the text of documents, messages and pages exist, and have the options that are named', () => {
  const inDocuments = documents.flatMap((path) =>
    [...readText(path).matchAll(/`(?:npx )?sealpost ([^`]+)`/g)].map(([, text = '']) => mistake(text, true)),
  );
  const sources = listFiles('.ts', '.tsx', '.sh', '.yaml', '.service', 'Dockerfile').filter((path) => !isTest(path));
  const inSources = sources.flatMap((path) =>
    [...readText(path).matchAll(/(?<![\w./@'-])sealpost ((?:(?!sealpost )[^`'"<\n])+)/g)].map(([, text = '']) =>
      mistake(text, false),
    ),
  );
  expect(inDocuments.length).toBeGreaterThan(150);
  expect(inSources.length).toBeGreaterThan(120);
  expect([...inDocuments, ...inSources].filter((one) => one !== undefined)).toEqual([]);
});

test('named commands: a command or an option that does not exist would be found', async () => {
  expect(await rejection(['store', 'stat'])).toContain('unknown command');
  expect(await rejection(['account', 'create', '--entitle', 'public'])).toContain('--name');
  expect(mistake('serve --nope. See --that', false)).toContain('no option --nope');
  expect(mistake('acount list', true)).toContain('no command');
  expect(mistake('stream list, and --nope', false)).toBeUndefined();
});

/** Runs lines for a shell, one after the other, in an empty folder; a server until it answers. */
const runLines = async (name: string, lines: readonly string[]): Promise<void> => {
  const [place, bin] = [join(folder, name), join(folder, `${name}-bin`)];
  for (const one of [place, bin]) mkdirSync(one);
  symlinkSync(sealpost, join(bin, 'sealpost'));
  const env = {
    PATH: `${bin}:${process.env.PATH}`,
    SEALPOST_LISTEN: '127.0.0.1:0',
    SEALPOST_OPS_LISTEN: '127.0.0.1:0',
  };
  for (const line of lines) {
    if (!line.includes('sealpost serve'))
      execFileSync('bash', ['-ec', line], { cwd: place, env: { HOME: process.env.HOME, ...env }, stdio: 'pipe' });
    else {
      const server = startProgram(['-ec', `exec ${line}`], place, env, 'bash');
      await server.printed(/^Sealpost answers at /m);
      server.child.kill('SIGTERM');
      expect((await server.finished).code).toBe(0);
    }
  }
};

test('named commands: what init suggests runs as printed, in an empty folder, and begins with npx where npm started it', async () => {
  const suggestedTo = async (env: NodeJS.ProcessEnv): Promise<readonly string[]> => {
    const { stdout } = await runCommand(['init'], mkdtempSync(join(folder, 'init-')), env);
    return stdout.split('\n').filter((line) => /^ {2}\S/.test(line));
  };
  const lines = await suggestedTo({});
  expect(lines.length).toBe(5);
  expect(await suggestedTo({ npm_command: 'exec' })).toEqual(
    lines.map((line) => line.replace('sealpost', 'npx sealpost')),
  );
  await runLines('suggested', ['sealpost init', ...lines]);
});

test('named commands: operating.md’s first start runs as printed, in an empty folder', async () => {
  const run = readText('docs/operating.md').split('\n## Run\n')[1] ?? '';
  const before = [...(run.split('```sh')[0] ?? '').matchAll(/`(sealpost simulate [^`]+|\(umask [^`]+)`/g)].map(
    ([, line = '']) => line,
  );
  const block = /```sh\n([\s\S]*?)```/.exec(run)?.[1] ?? '';
  expect(before.length).toBe(2);
  await runLines('operating', [...before, ...block.trim().split('\n')]);
});
