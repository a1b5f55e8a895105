// Owns packing: from which size on, and of what stays the same once, as well as gzip can, instead of at each request.
import { gzipSync } from 'node:zlib';

/** Below this a body goes out as it is: compressing a report costs half as much as serving it. */
export const gzipBytesMin = 8_192;

/** A body that stays the same with its gzip, where it has one, as an answer takes them. */
export const withGzip = (body: Buffer): { readonly body: Buffer; readonly packed?: Buffer } =>
  body.length < gzipBytesMin ? { body } : { body, packed: gzipSync(body, { level: 9 }) };
