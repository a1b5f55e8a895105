// Keeps the settings, the profiles and the home folder of whoever runs the tests out of them, and of all programs that they start.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

/** An environment without settings and with another home folder. Caches stay where they are, and so does what npm and git are configured with. */
export const isolate = (env: NodeJS.ProcessEnv, home: string, emptyHome: string): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(Object.entries(env).filter(([name]) => !/^(?:SEALPOST|XDG)_/.test(name))),
  HOME: emptyHome,
  SEALPOST_TEST_HOME: emptyHome,
  XDG_CACHE_HOME: env.XDG_CACHE_HOME || join(home, '.cache'),
  npm_config_cache: env.npm_config_cache || join(home, '.npm'),
  npm_config_userconfig: env.npm_config_userconfig || join(home, '.npmrc'),
  GIT_CONFIG_GLOBAL: env.GIT_CONFIG_GLOBAL || join(home, '.gitconfig'),
});

/** What vitest runs before the tests of each project, the first of which acts for all, and for runs within a test; it calls what is returned after them. */
export const setup = (): (() => void) | undefined => {
  if (process.env.SEALPOST_TEST_HOME !== undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-home-'));
  const isolated = isolate(process.env, existsSync(homedir()) ? homedir() : folder, folder);
  for (const name of Object.keys(process.env)) if (!(name in isolated)) delete process.env[name];
  Object.assign(process.env, isolated);
  return () => rmSync(folder, { recursive: true, force: true });
};
