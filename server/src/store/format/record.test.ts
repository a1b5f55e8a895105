import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { CorruptRecordError } from '../store.ts';
import { decodeKeyedRecord, decodeRecord, encodeKeyedRecord, encodeRecord } from './record.ts';

const record = { name: 'ETH/USD', hidden: false, tags: ['é'] };
const key = Buffer.from('stream 1');
const json = Buffer.from(JSON.stringify(record));

const withChecksum = (checksum: number, bytes: Buffer): Buffer => {
  const head = Buffer.alloc(4);
  head.writeUInt32BE(checksum);
  return Buffer.concat([head, bytes]);
};

test('record: four bytes of checksum, then JSON', () => {
  expect(encodeRecord(record)).toEqual(withChecksum(crc32(json), json));
  expect(decodeRecord(encodeRecord(record), 'account x')).toEqual(record);
});

test('record: the checksum of a keyed one covers its key', () => {
  const encoded = encodeKeyedRecord(key, record);
  expect(encoded).toEqual(withChecksum(crc32(json, crc32(key)), json));
  expect(decodeKeyedRecord(key, encoded, 'stream 1')).toEqual(record);
  expect(() => decodeKeyedRecord(key, encodeRecord(record), 'stream 1')).toThrow('stream 1 does not match');
  expect(() => decodeKeyedRecord(Buffer.from('stream 2'), encoded, 'stream 2')).toThrow(
    new CorruptRecordError('stream 2 does not match its checksum'),
  );
  expect(() => decodeRecord(encoded, 'stream 1')).toThrow('stream 1 does not match its checksum');
});

test('record: any flipped bit, and any shorter record, is found and named', () => {
  const encoded = encodeRecord(record);
  const failure = new CorruptRecordError('account x does not match its checksum');
  for (let bit = 0; bit < encoded.length * 8; bit++) {
    const flipped = Buffer.from(encoded);
    flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    expect(() => decodeRecord(flipped, 'account x'), `bit ${bit}`).toThrow(failure);
  }
  for (let length = 0; length < encoded.length; length++)
    expect(() => decodeRecord(encoded.subarray(0, length), 'account x'), `${length} bytes`).toThrow(failure);
});

test('record: what has its checksum and is not JSON is corrupt too', () => {
  for (const text of ['{', '']) {
    const bytes = Buffer.from(text);
    expect(() => decodeRecord(withChecksum(crc32(bytes), bytes), 'account x')).toThrow(
      new CorruptRecordError('account x is not JSON'),
    );
  }
});

test.each(['null', '1', '"text"', 'true'])(
  'record: %s, which has its checksum and is no record, is corrupt too',
  (text) => {
    const bytes = Buffer.from(text);
    expect(() => decodeRecord(withChecksum(crc32(bytes), bytes), 'account x')).toThrow(
      new CorruptRecordError('account x is not a record'),
    );
  },
);
