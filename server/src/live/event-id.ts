// Event IDs: a position in the append order and its lineage, encrypted. An ID reveals nothing about streams that its reader may not see, and one
// from another store or from before a restore is recognized (D123).
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { ApiError } from '@sealpost/protocol';
import type { Lineage } from '../store/store.ts';

/** What a client shows to resume: a position of this lineage, or an id of another one. */
export type ResumePoint = number | 'foreign';

export type EventIds = {
  readonly encode: (position: number) => string;
  /** Reads the header Last-Event-ID; undefined when there is none. What cannot be an id is an ApiError. */
  readonly parse: (header: string | undefined) => ResumePoint | undefined;
};

// One block of AES: epoch 6 bytes, position 6, zeros 4. What was not encrypted with the key has another epoch, but for one in 2^80.
const blockBytes = 16;
const positionAt = 6;
const positionBytes = 6;

const idPattern = /^[A-Za-z0-9_-]{22}$/;
/** Ids before they were encrypted. */
const plainPattern = /^[0-9]{1,15}$/;

export function createEventIds({ epoch, key }: Lineage): EventIds {
  // ECB, since each id is one block; both work block by block without a state.
  const cipher = createCipheriv('aes-128-ecb', key, null).setAutoPadding(false);
  const decipher = createDecipheriv('aes-128-ecb', key, null).setAutoPadding(false);
  const plain = Buffer.alloc(blockBytes);
  plain.set(epoch.subarray(0, positionAt));
  return {
    encode: (position) => {
      plain.writeUIntBE(position, positionAt, positionBytes);
      return cipher.update(plain).toString('base64url');
    },
    parse: (header) => {
      if (header === undefined || header === '') return undefined;
      if (plainPattern.test(header)) return 'foreign';
      if (!idPattern.test(header))
        throw new ApiError('malformed_header', 'Last-Event-ID is not the ID of an event of this stream.', {
          header: 'Last-Event-ID',
        });
      const block = decipher.update(Buffer.from(header, 'base64url'));
      const isOurs =
        block.subarray(0, positionAt).equals(epoch.subarray(0, positionAt)) &&
        block.readUInt32BE(positionAt + positionBytes) === 0;
      return isOurs ? block.readUIntBE(positionAt, positionBytes) : 'foreign';
    },
  };
}
