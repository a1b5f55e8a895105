// What tests get from the machine they run on: no setting, and no home with profiles.
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isolate } from './environment.ts';
import { startProgram } from './support/real-program.ts';

const ours = /^(?:HOME|SEALPOST_.*|XDG_.*)$/;
const namesOf = (env: object): readonly string[] => Object.keys(env).filter((name) => ours.test(name));

test('environment: settings, profiles and the home folder stay out of tests; caches stay', () => {
  const env = {
    ...{ PATH: '/bin', HOME: '/home/me', XDG_CONFIG_HOME: '/home/me/.config', XDG_RUNTIME_DIR: '/run/user/1' },
    ...{ SEALPOST_STORE: 'nonsense', SEALPOST_PORT: 'abc', SEALPOST_SECRET: 'mine', SEALPOST_SHARED_DEMO: 'gone' },
    npm_config_cache: '/npm',
  };
  expect(isolate(env, '/home/me', '/tmp/home')).toEqual({
    ...{ PATH: '/bin', HOME: '/tmp/home', SEALPOST_TEST_HOME: '/tmp/home', XDG_CACHE_HOME: '/home/me/.cache' },
    npm_config_cache: '/npm',
    ...{ npm_config_userconfig: '/home/me/.npmrc', GIT_CONFIG_GLOBAL: '/home/me/.gitconfig' },
  });
});

test('environment: this process has it, and so have the programs that it starts', async () => {
  const allowed = /^SEALPOST_(?:TEST_HOME|BUILT_COMMAND|BUNDLED_THREADS|SHARED_DEMO)$/;
  expect(
    namesOf(process.env)
      .filter((name) => !allowed.test(name))
      .sort(),
  ).toEqual(['HOME', 'XDG_CACHE_HOME']);
  expect(homedir().startsWith(join(tmpdir(), 'sealpost-home-'))).toBe(true);
  const { stdout } = await startProgram(['-p', 'JSON.stringify(process.env)'], homedir()).finished;
  expect(namesOf(JSON.parse(stdout))).toEqual(['HOME']);
  expect(JSON.parse(stdout).HOME).toBe(homedir());
});
