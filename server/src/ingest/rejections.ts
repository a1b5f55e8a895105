// The one table of reasons for which ingest rejects a report. The texts say what to do; docs/cli.md says how to list rejected lines.
import { type VerificationFailure, verificationFailures } from '@sealpost/protocol';

/** Why a line was rejected. */
export const rejections = {
  malformed_line: 'The line is not a JSON report.',
  malformed_report: 'fullReport is not a well-formed report.',
  mismatched_fields: 'A field of the line does not match what was signed.',
  ...verificationFailures,
  retired_signer_set: 'The signer set of the report is retired.',
  unknown_stream: 'The stream is not in the catalog. Add it first: sealpost stream add.',
  wrong_network: 'The stream belongs to the other network.',
  decommissioned_stream: 'The stream is decommissioned and accepts no new reports.',
  malformed_window: 'validFromTimestamp is after observationsTimestamp.',
  expiry_before_observation: 'expiresAt is before observationsTimestamp.',
  older_than_retention: 'The observation is older than retention.',
  ahead_of_clock: 'The observation is too far ahead of this machine’s clock.',
  held_back: 'An earlier report of the stream was rejected and may be accepted later. Send this one again after it.',
  overlapping_window: 'The window overlaps that of a stored report.',
  conflicting_report:
    'Another report body is stored for this stream and observation. It was kept; find out who signed twice.',
  check_failed: 'The server failed to check the line, and rejected only this line. Report this as a bug.',
} as const satisfies Record<string, string> & Record<VerificationFailure, string>;

export type RejectionCode = keyof typeof rejections;

/** A line was rejected. */
export class Rejection extends Error {
  override readonly name = 'Rejection';
  readonly code: RejectionCode;

  constructor(code: RejectionCode, detail?: string) {
    super(detail === undefined ? rejections[code] : `${rejections[code]} ${detail}`);
    this.code = code;
  }
}

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

/** The header of `POST /ingest`, and its value, by which a client says that it is such a sender. */
export const afterRejection = { header: 'Sealpost-After-Rejection', hold: 'hold' } as const;
