// What seeds are made of: reports of every schema version, signed by the simulator's oracles, the same in every run.
import {
  decodeFullReport,
  decodeReportBody,
  type FullReport,
  type Hex,
  toReportJson,
  windowOf,
} from '@sealpost/protocol';
import { createNetwork, type Network } from '@sealpost/simulator';
import { createBody } from '../contracts/reports.ts';
import { createRandom } from '../support/random.ts';

export type Material = { readonly network: Network; readonly reports: readonly Hex[] };

/** Enough for every schema version, in seconds and in milliseconds. */
const reportCount = 24;

export const createMaterial = async (): Promise<Material> => {
  const network = await createNetwork({ seed: 'fuzz' });
  const reports = Array.from({ length: reportCount }, (_, i) => network.sign(createBody(createRandom(i)), i));
  return { network, reports };
};

export const toBytes = (hex: string): Buffer => Buffer.from(hex.slice(2), 'hex');
export const toHex = (bytes: Uint8Array): Hex => `0x${Buffer.from(bytes).toString('hex')}`;

/** A report as the API returns it. */
export const reportJsonOf = (fullReport: Hex) => {
  const full: FullReport = decodeFullReport(fullReport);
  const body = decodeReportBody(full.body);
  return toReportJson(body.feedId, windowOf(body), fullReport);
};
