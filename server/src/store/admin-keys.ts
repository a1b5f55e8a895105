// The field of each administrative record that is its key.
import type { AdminKind, AdminRecords } from './store.ts';

/** The key that a record is stored under. */
export const keyedBy: { readonly [K in AdminKind]: (record: AdminRecords[K]) => string } = {
  stream: ({ feedId }) => feedId,
  account: ({ userId }) => userId,
  signerSet: ({ configDigest }) => configDigest,
  mirror: ({ feedId }) => feedId,
};
