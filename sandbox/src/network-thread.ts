// The thread that signs the reports of a sandbox's simulated network. It answers in the order of requests, so that an effect is in force from the first
// request after it.
import { parentPort, workerData } from 'node:worker_threads';
import { decodeFullReport, decodeReportBody, headlinePriceOf, windowOf } from '@sealpost/protocol';
import type { NewReport } from '@sealpost/server/store/store';
import { createScenarioSimulation, type Effect, type ScenarioOptions } from '@sealpost/simulator';

/** What the thread is asked for: reports as lines or as the store takes them, both ends included, or to know more effects. */
export type NetworkRequest =
  | { readonly act: 'lines'; readonly from: number; readonly to: number }
  | { readonly act: 'reports'; readonly from: number; readonly to: number }
  | { readonly act: 'add'; readonly effects: readonly Effect[] };

const simulation = await createScenarioSimulation(workerData as ScenarioOptions); // given by network.ts

const linesOf = (from: number, to: number): readonly string[] => {
  const lines: string[] = [];
  for (let second = from; second <= to; second += 1)
    for (const { report } of simulation.deliverAt(second)) lines.push(JSON.stringify(report));
  return lines;
};

const reportsOf = (from: number, to: number): readonly NewReport[] => {
  const reports: NewReport[] = [];
  for (let second = from; second <= to; second += 1)
    for (const { report } of simulation.deliverAt(second)) {
      const body = decodeReportBody(decodeFullReport(report.fullReport).body);
      const { validFromMs, observationsMs } = windowOf(body);
      const fullReport = Buffer.from(report.fullReport.slice(2), 'hex');
      reports.push({ feedId: body.feedId, validFromMs, observationsMs, price: headlinePriceOf(body), fullReport });
    }
  return reports;
};

// Adding is asynchronous, since a rotation compiles an engine: requests wait for those before them.
let last: Promise<void> = Promise.resolve();
const answer = async (request: NetworkRequest): Promise<void> => {
  if (request.act === 'add') await simulation.add(request.effects);
  const { act } = request;
  const answered =
    act === 'add' ? [] : act === 'lines' ? linesOf(request.from, request.to) : reportsOf(request.from, request.to);
  parentPort?.postMessage({ answer: answered });
};
parentPort?.on('message', (request: NetworkRequest) => {
  last = last.then(() => answer(request));
});
parentPort?.postMessage({ ready: true });
