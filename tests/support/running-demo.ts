// The real demo in a folder of its own, as a child process, and any script of the project run against it as its README says.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sealpost, startProgram } from './real-program.ts';
import { root } from './source-tree.ts';

export type Demo = {
  readonly url: string;
  readonly opsUrl: string;
  readonly userId: string;
  readonly secret: string;
  /** Readable streams with a latest report; those with a report every second first. */
  readonly feedIds: readonly string[];
  /** What the examples read: where, and who. */
  readonly env: Readonly<Record<string, string>>;
  /** Rejects unless it ends with 0. */
  readonly stop: () => Promise<void>;
};

export type DemoOptions = {
  /** The binary that runs it. */
  readonly node?: string;
  readonly pastMinutes?: number;
  /** Ends it, also before it answers. */
  readonly signal?: AbortSignal;
  /** Of a demo that is to continue, and stays; by default a new one, which is removed at the stop. */
  readonly folder?: string;
  readonly port?: number;
  /** Its settings; by default there is no rate limit. */
  readonly settings?: NodeJS.ProcessEnv;
};

/** Resolves when it answers, with the last two minutes of history in its store. */
export const startDemo = async (options: DemoOptions = {}): Promise<Demo> => {
  const { node, pastMinutes = 6, signal, port = 0, settings = { SEALPOST_REQUESTS_PER_SECOND: '0' } } = options;
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'sealpost-demo-'));
  const args = ['demo', '--json', '--port', String(port), '--dir', folder, '--past', String(pastMinutes)];
  const program = startProgram([sealpost, ...args], folder, settings, node);
  signal?.addEventListener('abort', () => program.child.kill('SIGKILL'));
  const [line] = await program.printed(/^\{"url":.*\}$/m);
  const { url, opsUrl, userId, secret, feedIds } = JSON.parse(line);
  return {
    url,
    opsUrl,
    userId,
    secret,
    feedIds,
    env: { SEALPOST_URL: url, SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret },
    stop: async () => {
      program.child.kill('SIGTERM');
      const { code, stderr } = await program.finished;
      if (code !== 0) throw new Error(`The demo stopped with ${code}: ${stderr}`);
      if (options.folder === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
};

/** Runs a TypeScript file as `npx tsx FILE` does in the project's folder, without the launcher's process; resolves with what it printed. */
export const runWithTsx = async (
  file: string,
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
  cwd = root,
): Promise<string> => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', file, ...args], {
    cwd,
    env: { PATH: process.env.PATH, ...env },
  });
  return stdout;
};
