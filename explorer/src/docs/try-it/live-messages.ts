// The messages of a live connection as they arrive. Browsers cannot sign a WebSocket handshake, so reports come from the event stream.
import { decodeFullReport, readReportBody, windowOf } from '@sealpost/protocol';
import { readJson } from './exchange.ts';

/** Reads an event stream; calls back with each event's text. Resolves when the server ends it. */
export async function readEventTexts(body: ReadableStream<Uint8Array>, onEvent: (text: string) => void): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (rest + decoder.decode(value, { stream: true })).split('\n\n');
    rest = events.pop() ?? '';
    for (const text of events) if (text.trim() !== '') onEvent(text.trim());
  }
}

/** The report of an event; undefined for a comment. */
const dataOf = (event: string): string | undefined => /^data: ?(.*)$/m.exec(event)?.[1];

/** The message that a WebSocket would send for an event; undefined for an event without a report. */
export function socketMessage(event: string, inMs: boolean): string | undefined {
  const text = dataOf(event);
  if (text === undefined) return undefined;
  const { feedID, fullReport } = readJson(text);
  if (!inMs || typeof fullReport !== 'string') return `{"report":${text}}`;
  const { validFromMs, observationsMs } = windowOf(readReportBody(decodeFullReport(fullReport).body));
  return JSON.stringify({
    report: { feedID, validFromTimestampMs: validFromMs, observationsTimestampMs: observationsMs, fullReport },
  });
}

/** A message for people: long hex is cut. */
export const shortenHex = (text: string): string => text.replace(/(0x[0-9a-f]{64})[0-9a-f]{8,}/g, '$1…');
