import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { askLine } from './prompt.ts';

const terminal = () => {
  const modes: boolean[] = [];
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (on: boolean) => modes.push(on) });
  let shown = '';
  const output = { write: (text: string) => (shown += text) };
  return { input, output, modes, shown: () => shown };
};

test('prompt: a secret is typed without echo, keys correct it, and the terminal is as before', async () => {
  const { input, output, modes, shown } = terminal();
  const asked = askLine(input, output, 'Secret: ', { hidden: true });
  for (const keys of ['wrong\x15', 'sé', 'x\x7f', '\x1b\tcret', '\r']) input.write(keys);
  expect(await asked).toBe('sécret');
  expect([modes, shown()]).toEqual([[true, false], 'Secret: \n']);
});

test('prompt: two answers pasted at once answer two questions', async () => {
  const { input, output } = terminal();
  input.write('user\r\nsecret\n');
  expect(await askLine(input, output, 'User: ')).toBe('user');
  expect(await askLine(input, output, 'Secret: ', { hidden: true })).toBe('secret');
});

test('prompt: Ctrl-C ends it as an interruption, and the terminal is as before', async () => {
  const { input, output, modes } = terminal();
  const asked = askLine(input, output, 'Secret: ', { hidden: true });
  input.write('abc\x03');
  await expect(asked).rejects.toMatchObject({ exitCode: 130 });
  expect(modes).toEqual([true, false]);
});

test('prompt: a pipe gets no question, its end ends the line, and an endless line is rejected', async () => {
  const pipe = () => new PassThrough();
  const silent = { write: () => expect.unreachable() };
  const whole = pipe();
  whole.end('secret');
  expect(await askLine(whole, silent, 'Secret: ', { hidden: true })).toBe('secret');
  const endless = pipe();
  endless.write('x'.repeat(2_000));
  await expect(askLine(endless, silent, '')).rejects.toThrow('The line has more than 1024 characters.');
});
