// The pages of an LMDB file, taken apart as far as a test needs that flips bits in them: where each record's key and value lie, and what else
// there is. Layout of the LMDB inside lmdb-js 3: a page header of 24 bytes, pointers counted from its end, nodes with a head of 8.
import { readFileSync } from 'node:fs';

/** What a part of a file is. */
export const partKinds = ['key', 'value', 'node', 'header', 'pointers', 'branch', 'overflow', 'tree', 'meta'] as const;
export type PartKind = (typeof partKinds)[number];

/** Bytes of a file that are one thing. `key` is that of the record they belong to. */
export type Part = {
  readonly kind: PartKind;
  /** The table; `main` for the list of tables, `pages` for the first two pages. */
  readonly table: string;
  readonly key: Buffer | undefined;
  readonly from: number;
  readonly to: number;
};

const headBytes = 24;
const nodeHeadBytes = 8;
const metaAt = 24;
const flags = { branch: 1, leaf: 2 };
const nodeFlags = { overflow: 1, table: 2 };
const none = 0xffffffffffffffffn;

/** Takes apart every page in use, the free list left out. */
export const partsOf = (file: string): readonly Part[] => {
  const bytes = readFileSync(file);
  const pageBytes = bytes.readUInt32LE(metaAt + 24);
  const parts: Part[] = [];
  const metas = [0, pageBytes].map((at) => ({ at, transaction: bytes.readBigUInt64LE(at + metaAt + 128) }));
  for (const { at } of metas)
    parts.push({ kind: 'meta', table: 'pages', key: undefined, from: at, to: at + metaAt + 136 });
  const newest = metas.reduce((a, b) => (b.transaction > a.transaction ? b : a));
  const walk = (page: bigint, table: string): void => {
    if (page === none) return;
    const start = Number(page) * pageBytes;
    const kind = bytes.readUInt16LE(start + 18);
    const count = bytes.readUInt16LE(start + 20) / 2;
    const add = (part: PartKind, from: number, to: number, key?: Buffer): void =>
      void parts.push({ kind: part, table, key, from, to });
    add('header', start, start + headBytes);
    add('pointers', start + headBytes, start + headBytes + count * 2);
    for (let i = 0; i < count; i++) {
      const node = start + headBytes + bytes.readUInt16LE(start + headBytes + i * 2);
      const [low, high, flag, keyBytes] = [0, 2, 4, 6].map((at) => bytes.readUInt16LE(node + at)) as [
        number,
        number,
        number,
        number,
      ];
      const keyAt = node + nodeHeadBytes;
      if ((kind & flags.branch) !== 0) {
        add('branch', node, keyAt + keyBytes);
        walk(BigInt(low) | (BigInt(high) << 16n) | (BigInt(flag) << 32n), table);
        continue;
      }
      const key = Buffer.from(bytes.subarray(keyAt, keyAt + keyBytes));
      const valueAt = keyAt + keyBytes;
      const length = low | (high << 16);
      add('node', node, keyAt, key);
      add('key', keyAt, valueAt, key);
      if ((flag & nodeFlags.table) !== 0) {
        add('tree', valueAt, valueAt + length, key);
        walk(bytes.readBigUInt64LE(valueAt + 40), key.toString('latin1').replace(/\0$/, ''));
      } else if ((flag & nodeFlags.overflow) !== 0) {
        const overflow = Number(bytes.readBigUInt64LE(valueAt)) * pageBytes;
        add('node', valueAt, valueAt + 8, key);
        add('overflow', overflow, overflow + headBytes, key);
        add('value', overflow + headBytes, overflow + headBytes + length, key);
      } else add('value', valueAt, valueAt + length, key);
    }
  };
  walk(bytes.readBigUInt64LE(newest.at + metaAt + 72 + 40), 'main');
  return parts.filter(({ from, to }) => to > from);
};
