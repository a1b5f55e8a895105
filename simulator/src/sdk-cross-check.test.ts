// The client library that readers already use decodes what is simulated here.
import { decodeReport } from '@chainlink/data-streams-sdk';
import { decodeFullReport, decodeReportBody } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { createSimulation } from './simulation.ts';

const start = Date.parse('2025-11-03T14:29:00Z') / 1_000;

test('the public SDK reads the same values from one report of each schema version', async () => {
  const simulation = await createSimulation({ seed: 'demo' });
  const checked = new Set<number>();
  for (let second = start; second < start + 60; second += 1) {
    for (const { report } of simulation.deliverAt(second)) {
      const body = decodeReportBody(decodeFullReport(report.fullReport).body);
      if (checked.has(body.version)) continue;
      checked.add(body.version);
      const ours = new Map<string, unknown>(Object.entries(body));
      const { version, ...theirs } = decodeReport(report.fullReport, report.feedID);
      expect(version).toBe(`V${body.version}`);
      for (const [name, value] of Object.entries(theirs)) {
        // It reads some 64-bit fields as doubles.
        expect(Number(value), `${version} ${name}`).toBe(Number(ours.get(name)));
        if (typeof value === 'bigint') expect(value, `${version} ${name}`).toBe(ours.get(name));
      }
      expect(Object.keys(theirs).length).toBe(ours.size - 4); // it leaves the window and the feed ID to the envelope
    }
  }
  expect(checked.size).toBe(12);
});
