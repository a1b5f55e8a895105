// Market status codes in words; they differ between schema versions.
import type { SchemaVersion } from '@sealpost/protocol';

export type MarketStatus = { readonly text: string; readonly isOpen: boolean | undefined };

const unknown: MarketStatus = { text: 'Unknown', isOpen: undefined };
const closed: MarketStatus = { text: 'Closed', isOpen: false };

/** By code, in versions with only open and closed. */
const openOrClosed: readonly MarketStatus[] = [unknown, closed, { text: 'Open', isOpen: true }];

/** By code, in versions with trading sessions. */
const sessions: readonly MarketStatus[] = [
  unknown,
  { text: 'Pre-market', isOpen: true },
  { text: 'Regular hours', isOpen: true },
  { text: 'Post-market', isOpen: true },
  { text: 'Overnight', isOpen: true },
  closed,
];

/** The market status of a code in a schema version. */
export const marketStatusOf = (version: SchemaVersion, code: number): MarketStatus =>
  (version === 11 ? sessions : openOrClosed)[code] ?? { text: `Unknown code ${code}`, isOpen: undefined };
