// Sandboxes of a test file, closed after each test.
import { afterEach } from 'vitest';
import { type Sandbox, type SandboxOptions, startSandbox } from './index.ts';

/** When they start. */
export const at = '2026-03-13T14:30:00Z';
export const t0 = Date.parse(at) / 1_000;

/** A way to start sandboxes for the test file that calls this. Not at import: files that share a process share this module. */
export const createStart = (): ((options: SandboxOptions) => Promise<Sandbox>) => {
  const open: Sandbox[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map(({ close }) => close()));
  });
  return async (options) => {
    const sandbox = await startSandbox(options);
    open.push(sandbox);
    return sandbox;
  };
};
