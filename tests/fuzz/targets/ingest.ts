// NDJSON to the real ingest, on a store in memory. Every full report of the input is signed again if its first byte says so, so that mutated bodies get
// past the signatures.
import assert from 'node:assert/strict';
import { decodeFullReport, type FeedId, parseFeedId } from '@sealpost/protocol';
import { rejections } from '../../../server/src/ingest/rejections.ts';
import type { LineResult } from '../../../server/src/ingest/report-line.ts';
import { parseReportLine } from '../../../server/src/ingest/report-line.ts';
import { ingestNdjson } from '../../../server/src/ingest/sources/ndjson.ts';
import { createStoreMemory, openStore } from '../../../server/src/store/open.ts';
import { createRandom } from '../../support/random.ts';
import { openRunningIngest, testStream } from '../../support/running-ingest.ts';
import { createMaterial, type Material, reportJsonOf } from '../material.ts';
import { nameOf, requireSame, type Target } from '../target.ts';

const words = [
  'feedID',
  'fullReport',
  'report',
  'validFromTimestamp',
  'observationsTimestamp',
  '0x',
  '\n',
  '\r\n',
  '{}',
  '[]',
  'null',
];

/** Pieces of pseudo-random sizes that depend on the input alone. */
function* piecesOf(input: Buffer): Generator<Buffer> {
  const random = createRandom(Number.parseInt(nameOf(input).slice(0, 8), 16));
  for (let at = 0; at < input.length; ) {
    const end = Math.min(input.length, at + 1 + random(random(2) === 0 ? 16 : 4_096));
    yield input.subarray(at, end);
    at = end;
  }
}

async function* asStream(pieces: Iterable<Buffer>): AsyncGenerator<Buffer> {
  yield* pieces;
}

/** Signs the full report of a line anew, where it is one. */
const signLine = ({ network }: Material, line: string): string => {
  try {
    const { fullReport, ...rest } = parseReportLine(line);
    const { body, context } = decodeFullReport(fullReport);
    return JSON.stringify({
      ...rest,
      fullReport: network.sign(body, Number.parseInt(context.epochAndRound.slice(-12, -2), 16) % 2 ** 32),
    });
  } catch {
    return line;
  }
};

const feedIdsOf = ({ reports }: Material): readonly FeedId[] => [
  ...new Set(reports.map((report) => parseFeedId(reportJsonOf(report).feedID))),
];

export const openIngest = async (): Promise<Target> => {
  const material = await createMaterial();
  const { network, reports } = material;
  const memory = createStoreMemory();
  const running = await openRunningIngest(
    feedIdsOf(material)
      .slice(2)
      .map((feedId) => testStream(feedId)),
    new Map([[network.signerSet.configDigest, network.signerSet]]),
    () => 1_764_000_000_000,
    {},
    1,
    () => openStore('memory:', 'write', { memory }),
  );
  const submit = async (pieces: Iterable<Buffer>): Promise<readonly LineResult[]> => {
    const results: LineResult[] = [];
    for await (const batch of ingestNdjson(running.ingest, asStream(pieces))) results.push(...batch);
    (running.events as unknown[]).length = 0;
    return results;
  };
  const run = async (input: Buffer): Promise<string> => {
    const text = input.subarray(1).toString();
    const bytes =
      input[0] === 0x73
        ? Buffer.from(
            text
              .split('\n')
              .map((line) => signLine(material, line))
              .join('\n'),
          )
        : input.subarray(1);
    const lines = bytes
      .toString()
      .replace(/^\ufeff/, '')
      .split('\n')
      .map((line) => line.replace(/\r$/, ''));
    const expected = lines.flatMap((line, i) => (line.trim() === '' ? [] : [i + 1]));
    const results = await submit([bytes]);
    requireSame(
      results.map(({ line }) => line),
      expected,
      'not one result for each line',
    );
    for (const { code, result } of results) {
      assert.equal(code === null, result !== 'refused', 'a code without a rejection, or the reverse');
      assert.ok(code === null || Object.hasOwn(rejections, code), `${code} is not documented`);
      assert.notEqual(code, 'check_failed', 'the server failed to check a line');
    }
    const again = await submit(piecesOf(bytes));
    const codes = ({ line, code }: LineResult): unknown => [line, code];
    requireSame(again.map(codes), results.map(codes), 'in other pieces it has other results');
    return [
      ...new Set(
        results.map(
          ({ result, code, message }) => `${result} ${code} ${(message ?? '').replace(/\d+/g, 'N').slice(0, 80)}`,
        ),
      ),
    ]
      .slice(0, 4)
      .join(' / ');
  };
  const lines = reports.map((report) => JSON.stringify(reportJsonOf(report)));
  const seeds = [
    lines.slice(0, 3).join('\n'),
    `${lines[4]}\r\n\n${lines[5]}`,
    `{"report":${lines[6]}}`,
    ...lines.slice(7),
  ];
  return {
    seeds: seeds.flatMap((text) => [Buffer.from(`s${text}`), Buffer.from(`u${text}`)]),
    words,
    run,
    close: running.close,
  };
};
