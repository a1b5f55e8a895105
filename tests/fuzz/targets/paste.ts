// What people paste into the explorer's inspector, or open as a file.
import assert from 'node:assert/strict';
import { decodeFullReport, ReportFormatError } from '@sealpost/protocol';
import { readInputFile } from '../../../explorer/src/inspect/file.ts';
import { lineAndColumnOf, parsePaste, pastedReportsMax } from '../../../explorer/src/inspect/paste.ts';
import { createMaterial, reportJsonOf, toBytes } from '../material.ts';
import { outcomeOf, requireSame, shapeOf, type Target } from '../target.ts';

export const openPaste = async (): Promise<Target> => {
  const { reports } = await createMaterial();
  const json = reports.slice(0, 3).map(reportJsonOf);
  const texts = [
    ...reports.slice(0, 3),
    JSON.stringify({ report: json[0] }),
    JSON.stringify({ reports: json }, null, 2),
    json.map((one) => JSON.stringify(one)).join('\n'),
    JSON.stringify(json),
  ];
  const run = async (input: Buffer): Promise<string> => {
    const file = await readInputFile({
      name: 'a',
      size: input.length,
      arrayBuffer: async () => Uint8Array.from(input).buffer,
    });
    const text = file.kind === 'text' ? file.text : input.toString();
    const paste = parsePaste(text);
    if (paste.kind === 'empty') return `empty ${file.kind}`;
    if (paste.kind === 'wrong') {
      if (paste.at !== undefined)
        assert.ok(
          paste.at >= 0 && paste.at <= text.length && lineAndColumnOf(text, paste.at).line > 0,
          'a place outside of the text',
        );
      return `${shapeOf(paste.problem)} ${paste.at === undefined}`;
    }
    assert.ok(paste.reports.length > 0 && paste.reports.length <= pastedReportsMax, 'too many reports');
    for (const { fullReport } of paste.reports)
      assert.ok(
        'value' in outcomeOf(() => decodeFullReport(fullReport), [ReportFormatError]),
        'the explorer accepts what the decoder does not',
      );
    // Pasted again alone, each is the same.
    for (const { fullReport } of paste.reports.slice(0, 3))
      requireSame(
        parsePaste(fullReport),
        { kind: 'reports', reports: [{ fullReport, claim: undefined }] },
        'a report is pasted to another one',
      );
    return `${Math.min(paste.reports.length, 4)} reports ${file.kind} ${paste.reports[0]?.claim === undefined}`;
  };
  return {
    seeds: [
      ...texts.map((text) => Buffer.from(text)),
      toBytes(reports[4] ?? '0x'),
      Buffer.from(`\ufeff${texts[3]}`, 'utf16le'),
    ],
    words: ['0x', '0X', '"', ',', '\n', '{"report":', '{"reports":[', 'fullReport', 'feedID', '[', ']', 'null'],
    json: 'value',
    run,
  };
};
