// Catalog files, signers files and stream names.
import assert from 'node:assert/strict';
import {
  ApiError,
  compareStreams,
  matchStreams,
  parseCatalog,
  parseSignerSets,
  parseStream,
  toCatalogEntry,
  toSignerSetsJson,
} from '@sealpost/protocol';
import { createCatalog, createNetwork } from '@sealpost/simulator';
import { outcomeOf, requireSame, shapeOf, type Target } from '../target.ts';

const words = [
  ...[
    'feedId',
    'name',
    'feeds',
    'schemaVersion',
    'V3',
    'status',
    'live',
    'testing',
    'decommissioned',
    'decommissionedAt',
    'hidden',
  ],
  ...[
    'createdAt',
    '2025-02-30T00:00:00Z',
    '2025-01-31T12:00:00.1234567Z',
    '2024-02-29T23:59:60Z',
    '0000-01-01T00:00:00Z',
    'f',
    'addresses',
  ],
  `0x${'00'.repeat(20)}`,
  `0x${'Ab'.repeat(32)}`,
];

const refusal = ({ message }: Error): string => {
  assert.ok(message.length < 2_000, 'an error repeats the whole input');
  return shapeOf(message.replace(/\[\d+\]/, '[]'));
};

const runCatalog = (value: unknown): string => {
  const read = outcomeOf(() => parseCatalog(value), [ApiError]);
  if ('error' in read) return refusal(read.error);
  for (const stream of read.value) {
    requireSame(parseStream(stream), stream, 'a parsed stream is parsed to another one');
    const listed = parseStream(toCatalogEntry(stream));
    requireSame({ ...listed, hidden: stream.hidden }, stream, 'a catalog entry is parsed to another stream');
  }
  const [first] = read.value;
  if (first !== undefined) assert.notEqual(matchStreams(first.feedId, read.value).found, 'none');
  [...read.value].sort(compareStreams);
  return `${Math.min(read.value.length, 3)} streams ${[...new Set(read.value.map(({ status }) => status))].sort()}`;
};

const runSigners = (value: unknown): string => {
  const read = outcomeOf(() => parseSignerSets(value), [ApiError]);
  if ('error' in read) return refusal(read.error);
  requireSame(parseSignerSets(toSignerSetsJson(read.value)), read.value, 'signer sets are parsed to others');
  return `${Math.min(read.value.size, 3)} signer sets`;
};

export const openCatalog = async (): Promise<Target> => {
  const streams = createCatalog('testnet');
  const networks = await Promise.all([4, 16, 31].map((n) => createNetwork({ seed: 'fuzz', n, f: 1 })));
  const sets = new Map(networks.map(({ signerSet }) => [signerSet.configDigest, signerSet]));
  const documents = [
    { feeds: streams.slice(0, 4) },
    streams.slice(-3),
    streams.map(toCatalogEntry).slice(5, 8),
    toSignerSetsJson(sets),
  ];
  return {
    seeds: documents.map((one) => Buffer.from(JSON.stringify(one))),
    words,
    json: 'value',
    run: (input) => {
      let value: unknown;
      try {
        value = JSON.parse(input.toString());
      } catch {
        return 'not JSON';
      }
      return `${runCatalog(value)} / ${runSigners(value)}`;
    },
  };
};
