import { closeSync, openSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { PassThrough, Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { openInput, readWholeLines } from './input.ts';

const never = new AbortController().signal;

const collect = async (input: Readable, signal = never, onRead: (bytes: number) => void = () => {}) => {
  const pieces: string[] = [];
  for await (const bytes of readWholeLines(input, signal, onRead)) pieces.push(Buffer.from(bytes).toString());
  return pieces;
};

const inputOf = (...chunks: readonly string[]) => Readable.from(chunks.map((chunk) => Buffer.from(chunk)));

test('ingest input: lines stay whole however the input is split, and the last may lack its newline', async () => {
  const read: number[] = [];
  const pieces = await collect(inputOf('on', 'e\ntwo\nth', 'ree'), never, (bytes) => read.push(bytes));
  expect(pieces).toEqual(['one\ntwo\n', 'three']);
  expect(read).toEqual([2, 10, 13]);
});

test('ingest input: input longer than any line is passed on, not buffered', async () => {
  const long = 'x'.repeat(20_000);
  expect(await collect(inputOf(long, long, '\nrest\n'))).toEqual([long, long, '\nrest\n']);
});

test('ingest input: an interruption ends the lines at once and drops the unfinished one', async () => {
  const input = new PassThrough();
  const interruption = new AbortController();
  input.write('one\ntw');
  const pieces = await collect(input, interruption.signal, () => setImmediate(() => interruption.abort('SIGINT')));
  expect(pieces).toEqual(['one\n']);
  expect(input.destroyed).toBe(true);
});

test('ingest input: a failing input fails the lines', async () => {
  const input = new PassThrough();
  setImmediate(() => input.destroy(new Error('EIO: i/o error, read')));
  await expect(collect(input)).rejects.toThrow('EIO: i/o error, read');
});

test.each([
  ['gzip', gzipSync('{}\n')],
  ['zstd', Buffer.of(0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x00)],
])(
  'ingest input: what %s compressed is rejected before any line of it, without advice to store it',
  async (_, bytes) => {
    const text = 'The input is compressed. Decompress it first, such as with: gunzip -c FILE > reports.ndjson';
    await expect(collect(Readable.from([bytes]))).rejects.toThrow(text); // `report verify` reads it, too
  },
);

test('ingest input: standard input that is a folder is rejected, not taken for an empty file', async () => {
  const fd = openSync(tmpdir(), 'r');
  try {
    const stdin = Object.assign(Readable.from([]), { fd }); // as Node has it, which reads nothing from a folder
    await expect(openInput({ stdin }, '-')).rejects.toMatchObject({
      exitCode: 2,
      message: 'Standard input is a folder. Pass a file of reports.',
    });
  } finally {
    closeSync(fd);
  }
});
