// The command `sealpost ingest`: ingests lines of reports into a local store or through a running server.

import type { SettingsCommand } from '../../command.ts';
import { formatBytes } from '../../formats.ts';
import { openInput, readWholeLines } from './input.ts';
import { ingestLines, ingestSettings, reportResults } from './lines.ts';

const about = `Each line is a report as the API returns it, {"fullReport": "0x…", …}, or {"report": {…}} around one. Signatures, stream and times are
checked; rejected lines go to quarantine with the reason, and the exit code is 1.

Run the command again to resume: stored reports are recognized without verifying signatures again.
Ctrl-C stops reading, finishes the lines in progress, and exits with 130.`;

export const ingestCommand: SettingsCommand = {
  name: 'ingest',
  summary: 'Verify signed reports and store them.',
  arguments: [{ name: '<FILE>', help: 'NDJSON file, or - for standard input' }],
  options: [
    {
      flag: '--to <url>',
      help: 'send the lines to the private listener of a running server instead of writing to the store',
    },
    { flag: '--json', help: 'print the result of each line as NDJSON, then {"summary": {…}}' },
  ],
  settings: ingestSettings,
  about,
  examples: [
    ['Ingest a file', 'sealpost ingest reports.ndjson'],
    ['Live from the simulator', 'sealpost simulate --live | sealpost ingest -'],
    [
      'While a server is running',
      'sealpost ingest reports.ndjson --to http://127.0.0.1:7402 --ingest-token-file ./token',
    ],
  ],
  run: async ({ session, options, resolved }, file: string) => {
    const input = await openInput(session, file);
    const signal = session.interruption();
    let read = 0;
    const lines = readWholeLines(input.stream, signal, (bytes) => {
      read = bytes;
    });
    try {
      const results = await ingestLines(session, resolved, options, lines);
      await reportResults(session, options, results, signal, (count) => ({
        fraction: input.bytes === undefined ? undefined : Math.min(1, read / input.bytes),
        count,
        label: `lines  ${formatBytes(read)}`,
      }));
    } finally {
      await input.close(); // also where the store could not be opened and nothing was read
    }
  },
};
