// Small records: JSON with a checksum, which in LMDB also covers the record's key.
import { crc32 } from 'node:zlib';
import { CorruptRecordError } from '../store.ts';

const encode = (record: object, seed: number): Buffer => {
  const json = Buffer.from(JSON.stringify(record));
  const head = Buffer.allocUnsafe(4);
  head.writeUInt32BE(crc32(json, seed));
  return Buffer.concat([head, json]);
};

const decode = <T>(value: Buffer, seed: number, name: string): T => {
  const json = value.subarray(4);
  if (value.length < 4 || crc32(json, seed) !== value.readUInt32BE(0))
    throw new CorruptRecordError(`${name} does not match its checksum`);
  const record = parse(json.toString(), name);
  if (typeof record !== 'object' || record === null) throw new CorruptRecordError(`${name} is not a record`);
  return record as T; // written by encode, so says the checksum
};

const parse = (json: string, name: string): unknown => {
  try {
    return JSON.parse(json);
  } catch {
    throw new CorruptRecordError(`${name} is not JSON`);
  }
};

/** An object as the bytes that are stored. */
export const encodeRecord = (record: object): Buffer => encode(record, 0);

/** The value again; throws a CorruptRecordError that names the record when its bytes are not what was written. */
export const decodeRecord = <T>(value: Buffer, name: string): T => decode(value, 0, name);

/** As `encodeRecord`; under another key the record does not match its checksum. */
export const encodeKeyedRecord = (key: Buffer, record: object): Buffer => encode(record, crc32(key));

/** Undoes `encodeKeyedRecord`. */
export const decodeKeyedRecord = <T>(key: Buffer, value: Buffer, name: string): T => decode(value, crc32(key), name);
