import { createSimulation } from '@sealpost/simulator';
import { expect, test } from 'vitest';
import { renderLiveReport } from './live-report.ts';

test('simulate: a live report is one line with time, name, prices and signatures', async () => {
  const simulation = await createSimulation({ seed: 'demo' });
  const at = Date.parse('2025-11-03T14:29:05Z') / 1_000;
  const names = new Map<string, string>(simulation.streams.map(({ stream }) => [stream.feedId, stream.name]));
  const lines = [...simulation.deliverAt(at)].map(({ report }) =>
    renderLiveReport(report, names.get(report.feedID) ?? '', 26),
  );
  const decimal = '[0-9]+(?:\\.[0-9]+)?';
  expect(lines.find((line) => line.includes('ETH/USD-Streams-CexPrice'))).toMatch(
    new RegExp(
      `^14:29:05  ETH/USD-Streams-CexPrice    price ${decimal}  bid ${decimal}  ask ${decimal}  2 signatures$`,
    ),
  );
  expect(lines.find((line) => line.includes('EUR/USD'))).toMatch(
    new RegExp(`^14:29:05  EUR/USD-Streams-ForexPrice  midPrice ${decimal}  2 signatures$`),
  );
});
