// Owns the way in from another server: its reports, as they come, become lines for the door. Nothing of them is believed: each passes
// the same checks as any other line.
import type { ReportJson } from '@sealpost/protocol';

/** Reports as lines of NDJSON, one chunk each: what is live should not wait for more. */
export async function* reportLines(reports: AsyncIterable<ReportJson>): AsyncGenerator<Uint8Array> {
  for await (const report of reports) yield Buffer.from(`${JSON.stringify(report)}\n`);
}
