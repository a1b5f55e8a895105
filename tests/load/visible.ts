// How long a report takes from the start of its POST to a reader of live reports.
import { setTimeout as pause } from 'node:timers/promises';
import { toReportJson } from '@sealpost/protocol';
import { sendLines } from '../formats/senders.ts';
import { openSocket } from '../support/live-clients.ts';
import type { Server, World } from '../support/real-program.ts';
import { createSignedReports } from '../support/signed-reports.ts';
import { createHistogram } from './histogram.ts';

/** Sends a report a second to one node, and waits for it at another, which may be the same. 99th percentile in ms, and how many came. */
export const measureVisible = async (
  to: Server,
  at: Server,
  { feedId, userId, secret }: World,
  isOver: () => boolean,
): Promise<{ readonly sent: number; readonly came: number; readonly p99Ms: number }> => {
  const { report } = await createSignedReports();
  const socket = await openSocket(at.url, `/api/v1/ws?feedIDs=${feedId}`, { userId, secret });
  const histogram = createHistogram();
  let [begunMs, sent, last] = [0, 0, 0];
  socket.webSocket.on('message', () => histogram.add((performance.now() - begunMs) * 1_000));
  while (!isOver()) {
    const second = Math.max(last + 1, Math.floor(Date.now() / 1_000));
    last = second;
    const one = report(feedId, second, second);
    const fullReport = `0x${Buffer.from(one.fullReport).toString('hex')}` as const;
    begunMs = performance.now();
    const { stored } = await sendLines(to, [JSON.stringify(toReportJson(feedId, one, fullReport))]);
    sent += stored ?? 0;
    await pause(1_000);
  }
  for (let left = 100; histogram.count() < sent && left > 0; left--) await pause(50);
  socket.webSocket.close();
  return { sent, came: histogram.count(), p99Ms: histogram.quantile(0.99) / 1_000 };
};
