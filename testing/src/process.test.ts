// What sandboxes do to the process that they are in.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

/** Runs a program in a process of its own; resolves with what it printed, once it has ended by itself. */
const runProgram = async (program: string): Promise<string> => {
  const entry = new URL('./index.ts', import.meta.url).href;
  const tsx = import.meta.resolve('tsx');
  const text = `import(${JSON.stringify(entry)}).then(async ({ startSandbox }) => {${program}});`;
  const args = ['--conditions=source', '--import', tsx, '--eval', text]; // --input-type would fail in the threads of a folder
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 });
  return `${stdout}${stderr}`;
};

test.for(['memory', 'folder'])(
  'sandbox: one in %s that is not closed does not keep the process alive, and pushes and reads finish',
  async (store) => {
    const printed = await runProgram(`
    const sandbox = await startSandbox({ streams: ['ETH/USD'], store: '${store}' });
    await sandbox.push('ETH/USD', 7);
    const stream = sandbox.client.stream(['ETH/USD']);
    await sandbox.subscribed('ETH/USD');
    setTimeout(() => sandbox.push('ETH/USD', 8), 100);
    for await (const report of stream) {
      console.log(report.feedID === sandbox.feedId('ETH/USD'));
      break;
    }
    await fetch(sandbox.url + '/time');
    console.log('the end');
  `);
    expect(printed).toBe('true\nthe end\n');
  },
);

test('sandbox: twelve in one process warn of nothing', async () => {
  const printed = await runProgram(`
    const start = () => startSandbox({ streams: ['ETH/USD'] });
    const sandboxes = await Promise.all(Array.from({ length: 12 }, start));
    await Promise.all(sandboxes.map((sandbox) => sandbox.close()));
    console.log('closed');
  `);
  expect(printed).toBe('closed\n');
});
