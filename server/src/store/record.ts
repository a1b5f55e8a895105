// Owns the form of small records in the store: JSON under a checksum.
import { crc32 } from 'node:zlib';
import { CorruptRecordError } from './store.ts';

/** Any JSON value as the bytes that are stored. */
export const encodeRecord = (record: unknown): Buffer => {
  const json = Buffer.from(JSON.stringify(record));
  const head = Buffer.allocUnsafe(4);
  head.writeUInt32BE(crc32(json));
  return Buffer.concat([head, json]);
};

/** The value again; throws a CorruptRecordError that names the record when its bytes are not what was written. */
export const decodeRecord = <T>(value: Buffer, name: string): T => {
  const json = value.subarray(4);
  if (value.length < 4 || crc32(json) !== value.readUInt32BE(0))
    throw new CorruptRecordError(`${name} does not match its checksum`);
  return JSON.parse(json.toString()) as T; // written by encodeRecord, so says the checksum
};
