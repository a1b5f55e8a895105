import { Command } from 'commander';
import { expect, test } from 'vitest';
import { completeHints, givenFlags } from './hints.ts';

const sample = async (...args: string[]) => {
  const program = new Command('sealpost').exitOverride();
  let given: ReturnType<typeof givenFlags> = [];
  program.hook('preAction', (_, command) => {
    given = givenFlags(command);
  });
  const stream = program.command('stream');
  stream
    .command('list')
    .option('--store <url>')
    .option('--url <url>')
    .action(() => {});
  program
    .command('ingest')
    .option('--store <url>')
    .option('--to <url>')
    .argument('[FILE]')
    .action(() => {});
  program.command('login').action(() => {});
  await program.parseAsync(args, { from: 'user' });
  return (text: string) => completeHints(program, given, text);
};

test('hints: a suggested command gets the flags that were given, quoted, at its end', async () => {
  const hint = await sample('ingest', '--store', './my data');
  expect(hint('List streams with: sealpost stream list.')).toBe(
    "List streams with: sealpost stream list --store './my data'.",
  );
  expect(hint('Run sealpost stream list, then sealpost ingest catalog.json and look.')).toBe(
    "Run sealpost stream list --store './my data', then sealpost ingest catalog.json --store './my data' and look.",
  );
  expect(hint('  sealpost stream list   # a comment\n  sealpost ingest FILE\n')).toBe(
    "  sealpost stream list --store './my data'   # a comment\n  sealpost ingest FILE --store './my data'\n",
  );
});

test('hints: flags that are present, unknown or useless are not added, and a password is hidden', async () => {
  const hint = await sample('ingest', '--store', 'postgres://me:hush@db/x');
  for (const text of [
    'Load reports with: sealpost ingest FILE --store here.',
    'Send them: sealpost ingest FILE --to URL.',
    'List streams with: sealpost stream list --url https://streams.example.com.',
    'Save them with: sealpost login URL.',
    'See: sealpost stream list --help.',
    'sealpost is a program; sealpost-x another.',
  ])
    expect(hint(text)).toBe(text);
  expect(hint('Run: sealpost stream list.')).not.toContain('hush');
  const none = await sample('ingest');
  expect(none('Run: sealpost stream list.')).toBe('Run: sealpost stream list.');
});
