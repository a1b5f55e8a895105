// Ingests a stream of lines, from a file, standard input or a request, in batches; results come back in order. The queue is ingest's: nothing is read
// before the lines read last have room in it.
import type { Ingest, IngestSender } from '../ingest.ts';
import { type LineResult, lineCharactersMax } from '../report-line.ts';

const batchLines = 256;

/**
 * Ingests a stream of bytes; yields the results of each batch, in the order of the lines, as soon as they are known: a sender may wait for an
 * acknowledgement before it sends more. Empty lines are skipped. With `cut` aborted, the input has ended early: what arrived of a last line without its
 * end is left out, so that its sender sends it again; ingest would reject it as malformed, for good.
 */
export async function* ingestNdjson(
  ingest: Ingest,
  input: AsyncIterable<Uint8Array>,
  cut?: AbortSignal,
  sender: IngestSender = {},
): AsyncGenerator<readonly LineResult[]> {
  const batches = toBatches(input, cut);
  const underWay: Promise<readonly LineResult[]>[] = [];
  let reading: Promise<IteratorResult<Batch>> | undefined = quiet(batches.next());
  try {
    while (reading !== undefined || underWay.length > 0) {
      if ((await firstOf(reading, underWay[0])) === 'settled') {
        yield await (underWay.shift() as Promise<readonly LineResult[]>); // it has just settled
        continue;
      }
      const { value, done } = await (reading as Promise<IteratorResult<Batch>>); // it has just come
      if (done) reading = undefined;
      else {
        const entered = new Promise<void>((resolve) => {
          const results = quiet(ingest.submit(value.lines, value.firstLine, sender, resolve));
          results.then(
            () => resolve(),
            () => resolve(),
          );
          underWay.push(results);
        });
        reading = quiet(entered.then(() => batches.next()));
      }
    }
  } finally {
    await Promise.allSettled(underWay);
  }
}

/** A promise that is awaited later: without this its failure, while another one is awaited, would end the process. */
const quiet = <T>(promise: Promise<T>): Promise<T> => {
  promise.catch(() => {});
  return promise;
};

/** Which comes first: the next batch, or the oldest results. Results that are there already win. */
const firstOf = (
  reading: Promise<unknown> | undefined,
  oldest: Promise<unknown> | undefined,
): Promise<'settled' | 'read'> => {
  const settled = oldest?.then(() => 'settled' as const);
  const read = reading?.then(() => 'read' as const);
  return Promise.race([settled, read].filter((one) => one !== undefined));
};

type Batch = { readonly lines: readonly string[]; readonly firstLine: number };

// A batch ends when it is full or when the input has nothing more for now, so that a slow source is not held back.
async function* toBatches(input: AsyncIterable<Uint8Array>, cut: AbortSignal | undefined): AsyncGenerator<Batch> {
  const decoder = new TextDecoder();
  let rest = '';
  let firstLine = 1;
  const take = (text: string): Batch[] => {
    const lines = text.split('\n').map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line));
    const batches: Batch[] = [];
    for (let i = 0; i < lines.length; i += batchLines)
      batches.push(...skipEmpty(lines.slice(i, i + batchLines), firstLine + i));
    firstLine += lines.length;
    return batches;
  };
  for await (const chunk of input) {
    rest += decoder.decode(chunk, { stream: true });
    const end = rest.lastIndexOf('\n');
    if (end >= 0) {
      yield* take(rest.slice(0, end));
      rest = rest.slice(end + 1);
    } else if (rest.length > 2 * lineCharactersMax) {
      rest = rest.slice(0, lineCharactersMax + 1); // ingest will reject a line this long; this bounds memory
    }
  }
  rest += decoder.decode(); // a character that was cut off is a line, too
  if (rest !== '' && cut?.aborted !== true) yield* take(rest);
}

// Runs of lines between empty ones keep their own numbers.
const skipEmpty = (lines: readonly string[], firstLine: number): Batch[] => {
  const batches: { lines: string[]; firstLine: number }[] = [];
  lines.forEach((line, i) => {
    if (line.trim() === '') return;
    const last = batches.at(-1);
    if (last !== undefined && last.firstLine + last.lines.length === firstLine + i) last.lines.push(line);
    else batches.push({ lines: [line], firstLine: firstLine + i });
  });
  return batches;
};
