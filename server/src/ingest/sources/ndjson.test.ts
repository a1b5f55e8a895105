import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import type { Ingest } from '../ingest.ts';
import type { LineResult } from '../report-line.ts';
import { ingestNdjson } from './ndjson.ts';

/** An ingest that only records what it gets. */
const createRecorder = () => {
  const seen: [number, string][] = [];
  const ingest: Ingest = {
    submit: async (lines, firstLine) => {
      seen.push(...lines.map((text, i): [number, string] => [firstLine + i, text]));
      return lines.map(
        (_, i): LineResult => ({
          line: firstLine + i,
          result: 'stored',
          feedID: null,
          observationsTimestamp: null,
          code: null,
          message: null,
        }),
      );
    },
    leave: () => {},
    close: async () => {},
  };
  return { ingest, seen };
};

async function* inPieces(text: string, size: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let i = 0; i < bytes.length; i += size) yield bytes.subarray(i, i + size);
}

const linesOf = async (text: string, size: number) => {
  const { ingest, seen } = createRecorder();
  const numbers: number[] = [];
  for await (const results of ingestNdjson(ingest, inPieces(text, size)))
    numbers.push(...results.map(({ line }) => line));
  expect(numbers).toEqual(seen.map(([number]) => number));
  return seen;
};

test('ndjson: lines arrive whole and numbered, however the bytes are cut', async () => {
  for (const size of [1, 2, 3, 7, 1_000])
    expect(await linesOf('a\n€uro\r\n\nlast', size)).toEqual([
      [1, 'a'],
      [2, '€uro'],
      [4, 'last'],
    ]);
});

test('ndjson: a last character that is cut off still makes a line, with a result', async () => {
  const { ingest, seen } = createRecorder();
  const pieces = [Buffer.from('a\n'), Buffer.from('€').subarray(0, 2)];
  const numbers: number[] = [];
  for await (const results of ingestNdjson(ingest, Readable.from(pieces)))
    numbers.push(...results.map(({ line }) => line));
  expect([numbers, seen]).toEqual([
    [1, 2],
    [
      [1, 'a'],
      [2, '\ufffd'],
    ],
  ]);
});

test('ndjson: no input gives no output; empty lines are skipped', async () => {
  expect(await linesOf('', 10)).toEqual([]);
  expect(await linesOf('\n \n\t\n', 10)).toEqual([]);
});

test('ndjson: more lines than a batch holds keep their numbers and order', async () => {
  const text = Array.from({ length: 2_000 }, (_, i) => `line ${i + 1}`).join('\n');
  const seen = await linesOf(text, 999);
  expect(seen).toHaveLength(2_000);
  expect(seen.every(([number, line], i) => number === i + 1 && line === `line ${i + 1}`)).toBe(true);
});

test('ndjson: a line without end is cut, so that memory stays bounded, and the next one is whole', async () => {
  const [long, next] = await linesOf(`${'x'.repeat(200_000)}\nnext\n`, 4_096);
  expect(long?.[1].length).toBeGreaterThan(16_384);
  expect(long?.[1].length).toBeLessThan(50_000);
  expect(next).toEqual([2, 'next']);
});

test('ndjson: when ingest fails, the stream ends with its error', async () => {
  const ingest: Ingest = { submit: () => Promise.reject(new Error('disk')), leave: () => {}, close: async () => {} };
  await expect(async () => {
    for await (const _ of ingestNdjson(ingest, inPieces('a\nb\n', 1)));
  }).rejects.toThrow('disk');
});

test('ndjson: results come as soon as they are known, while the sender still waits', async () => {
  const { ingest } = createRecorder();
  let goOn = (): void => {};
  const acknowledged = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  async function* patient(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('first\n');
    await acknowledged;
    yield Buffer.from('second\n');
  }
  const numbers: number[] = [];
  for await (const results of ingestNdjson(ingest, patient())) {
    numbers.push(...results.map(({ line }) => line));
    goOn();
  }
  expect(numbers).toEqual([1, 2]);
});
