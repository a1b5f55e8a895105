// What becomes of the reports behind a rejected one, for a sender that resumes after the newest stored report of a stream: they are not stored, or it would
// never send the rejected one again. It may end before it learns of the rejection, so ingest decides (D102).
import type { FeedId } from '@sealpost/protocol';
import type { RejectionCode } from './rejections.ts';

/**
 * A sender of reports, for example one stream of lines; compared by identity. One whose streams resume after their newest stored report has a set for
 * those that are held back. Others have none.
 */
export type IngestSender = { readonly held?: Set<FeedId> };

export const createResumingSender = (): IngestSender => ({ held: new Set() });

/** The header of `POST /ingest`, and its value, by which a client says that it is such a sender. */
export const afterRejection = { header: 'Sealpost-After-Rejection', hold: 'hold' } as const;

/** Rejections that end when the operator, or the clock, changes something. `held_back` ends with the one before it. */
const passingCodes: readonly RejectionCode[] = [
  'unknown_config_digest',
  'unknown_stream',
  'wrong_network',
  'decommissioned_stream',
  'ahead_of_clock',
  'held_back',
];

/** True where the same report may be accepted later. */
export const mayPass = (code: RejectionCode): boolean => passingCodes.includes(code);
