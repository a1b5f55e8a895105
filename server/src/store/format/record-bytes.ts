// The bytes of a stored record, as decoders take them: a Buffer that the caller keeps, or a view of memory that the next read overwrites.
// No function that takes a Buffer accepts them, so code that keeps some copies them first.

/** Bytes of one record, from 0 to `length`. Every method that takes a range takes both of its ends. */
export type RecordBytes = Pick<Buffer, 'length' | 'readUInt16BE' | 'readUInt32BE' | 'readUIntBE'> & {
  readonly [index: number]: number;
  /** Shares the record's memory. */
  readonly subarray: (start: number, end: number) => Uint8Array;
  readonly toString: (encoding: 'latin1', start: number, end: number) => string;
};
