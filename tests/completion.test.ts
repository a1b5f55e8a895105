// The completion scripts in the shells that they are for: bash is everywhere, zsh and fish come from their Debian packages.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runCommand } from '../cli/src/sample-session.fixture.ts';
import { findDebianProgram } from './support/debian-programs.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-completion-'));
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const scriptOf = async (shell: string): Promise<string> => {
  const { code, stdout } = await runCommand(['completion', shell]);
  expect(code).toBe(0);
  const path = join(folder, `sealpost.${shell}`);
  writeFileSync(path, stdout);
  return path;
};

/** What is typed → what is offered. */
const cases: readonly (readonly [typed: readonly string[], offered: string])[] = [
  [['stream', 'l'], 'list'],
  [['completion', ''], 'bash fish zsh'],
  [['export', 'LINK/USD', '--format', ''], 'csv ndjson parquet'],
  [['demo', '--log-level', 'de'], 'debug'],
  [['report', 'latest', 'BTC/USD', '--pro'], '--profile --profiles'],
  [['candles', '--resolution', ''], '15m 1d 1h 1m 1s 4h 5m'],
];
const sorted = (text: string): string => text.split(/\s+/).filter(Boolean).sort().join(' ');

test('completion: bash offers commands, options and choices', async () => {
  const script = await scriptOf('bash');
  for (const [typed, offered] of cases) {
    const code = `source ${script}; COMP_WORDS=(sealpost "$@"); COMP_CWORD=$#; _sealpost; echo "\${COMPREPLY[@]}"`;
    expect(sorted(execFileSync('bash', ['-c', code, 'bash', ...typed], { encoding: 'utf8' })), typed.join(' ')).toBe(
      offered,
    );
  }
  const files = `cd ${folder}; source ${script}; COMP_WORDS=(sealpost ingest seal); COMP_CWORD=2; _sealpost; echo "\${COMPREPLY[@]}"`;
  expect(execFileSync('bash', ['-c', files], { encoding: 'utf8' })).toContain('sealpost.bash');
});

test('completion: fish offers the same', async (context) => {
  const fish = findDebianProgram('fish');
  if ('missing' in fish) return context.skip(fish.missing);
  const script = await scriptOf('fish');
  for (const [typed, offered] of cases) {
    const code = `source ${script}; complete -C ${JSON.stringify(['sealpost', ...typed].join(' '))}`;
    const env = { HOME: folder, PATH: process.env.PATH };
    const printed = execFileSync(fish.path, ['--no-config', '-c', code], { encoding: 'utf8', env });
    expect(sorted(printed.replace(/\t.*$/gm, '')), typed.join(' ')).toBe(offered);
  }
});

test('completion: zsh takes the script', async (context) => {
  const zsh = findDebianProgram('zsh');
  if ('missing' in zsh) return context.skip(zsh.missing);
  execFileSync(zsh.path, ['-f', '-n', await scriptOf('zsh')], { stdio: 'pipe' });
});

test('completion: a shell that is not known is refused, and --json has every command', async () => {
  expect(await runCommand(['completion', 'tcsh'])).toMatchObject({
    code: 2,
    stderr: 'error: SHELL is "tcsh", expected bash, zsh, fish.\n',
  });
  const { commands } = JSON.parse((await runCommand(['completion', 'bash', '--json'])).stdout);
  expect(commands.map(({ path }: { path: string[] }) => path.join(' '))).toContain('store verify');
});
