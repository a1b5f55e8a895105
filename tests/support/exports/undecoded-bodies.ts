// Bodies that a quorum may sign and this release cannot decode: earlier layouts of version 14, versions to come, and known versions with another layout.
import { type FeedId, type Hex, parseFeedId } from '@sealpost/protocol';
import * as AbiParameters from 'ox/AbiParameters';

const headTypes = ['bytes32', 'uint64', 'uint64', 'uint192', 'uint192', 'uint64']; // times as wide as those in milliseconds
const prices = [3n * 10n ** 18n, -(10n ** 18n), 4n * 10n ** 18n];
const day = 1_797_811_200n;

type Layout = { readonly prefix: string; readonly types: readonly string[]; readonly values: readonly unknown[] };

const encode = (types: readonly string[], values: readonly unknown[]): Hex =>
  AbiParameters.encode(AbiParameters.from([...types] as [string]), [...values] as never); // types are known at run time only

/** What follows the head. */
const layouts = {
  'version 14 with contractMonth as text': {
    prefix: '0x000e',
    types: ['int192', 'int192', 'int192', 'uint64', 'uint64', 'uint64', 'uint32', 'string'],
    values: [...prices, day, day, day * 1_000_000_000n, 2, '2026-12'],
  },
  'version 14 with expiryTime as text': {
    prefix: '0x000e',
    types: [
      ...['int192', 'int192', 'int192', 'string', 'uint64', 'uint64', 'uint32', 'uint32', 'int192', 'uint32', 'int192'],
    ],
    values: [...prices, '2026-12-21', day, day * 1_000_000_000n, 2, 12, ...[prices[0], 5, prices[1]]],
  },
  'version 4095, whose fields nobody knows': { prefix: '0x0fff', types: ['string'], values: ['x'.repeat(1_000)] },
  'version 15 with the head alone': { prefix: '0x000f', types: [], values: [] },
  'version 3 with a word more': {
    prefix: '0x0003',
    types: ['int192', 'int192', 'int192', 'bool'],
    values: [...prices, true],
  },
  'version 3 with a price that is no int192': {
    prefix: '0x0003',
    types: ['int192', 'int256', 'int192'],
    values: [1n, 2n ** 200n, 1n],
  },
} as const satisfies Record<string, Layout>;

export type UndecodedLayout = keyof typeof layouts;

export const undecodedLayouts = Object.keys(layouts) as readonly UndecodedLayout[]; // the table's own keys

/** The stream of a layout; `n` tells streams apart. */
export const undecodedStream = (layout: UndecodedLayout, n = 0): FeedId =>
  parseFeedId(`${layouts[layout].prefix}${`${undecodedLayouts.indexOf(layout)}f${n}`.padStart(60, 'b')}`);

/** A body that no release so far can decode; its window is in the unit of its feed ID. */
export const undecodedBody = (
  layout: UndecodedLayout,
  {
    feedId = undecodedStream(layout),
    validFrom,
    observations,
  }: { feedId?: FeedId; validFrom: number; observations: number },
): Hex => {
  const { types, values }: Layout = layouts[layout];
  const month = 30 * 86_400 * (feedId.startsWith('0x1') ? 1_000 : 1);
  const head = [feedId, validFrom, observations, 1n, 2n, observations + month];
  return encode([...headTypes, ...types], [...head, ...values]);
};
