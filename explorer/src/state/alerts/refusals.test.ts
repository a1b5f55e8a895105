import { signal } from '@preact/signals';
import { type Client, decode, SealpostError } from '@sealpost/client';
import type { ReportJson } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import vectors from '../../../../protocol/src/vectors/verification.json' with { type: 'json' };
import { type Chunks, LoadingError } from '../code/chunks.ts';
import { type LiveReport, readLiveReport } from '../live-prices.ts';
import { createRefusals } from './refusals.ts';

const fullReport = vectors.cases.find(({ name }) => name === '2 of 4 signers')?.fullReport ?? '';

const reportOf = (bytes: string): LiveReport => {
  const { feedId, validFromTimestamp, observationsTimestamp } = decode(bytes);
  const report = { feedID: feedId, validFromTimestamp, observationsTimestamp, fullReport: bytes } as ReportJson; // hex in the vector
  return readLiveReport(report) as LiveReport; // it is not malformed
};

/** Checks one report; resolves with what is told about it. */
const check = (report: LiveReport, load: Chunks['load'], signers: () => Promise<unknown>): Promise<unknown> =>
  new Promise((resolve) => {
    const client = signal({ signers } as unknown as Client); // what is used of it
    const refusals = createRefusals({
      session: { client },
      chunks: { load },
      onRefused: () => resolve('refused'),
      onProblem: (error) => (error === undefined ? setTimeout(() => resolve('no problem')) : resolve(error)),
    });
    refusals.check(report);
  });

const loads: Chunks['load'] = (load) => load();
const known = async () => ({ signers: vectors.signerSets });

test('refusals: a report by its signers is no problem, a forged one is refused', async () => {
  expect(await check(reportOf(fullReport), loads, known)).toBe('no problem');
  const body = fullReport.lastIndexOf('1', fullReport.length / 2);
  const forged = `${fullReport.slice(0, body)}2${fullReport.slice(body + 1)}`;
  expect(await check(reportOf(forged), loads, known)).toBe('refused');
});

test('refusals: code that does not arrive, and signers that cannot be read, are told', async () => {
  const lost = new LoadingError('offline');
  expect(await check(reportOf(fullReport), () => Promise.reject(lost), known)).toBe(lost);
  const offline = new SealpostError('network_error', 'Gone.');
  expect(await check(reportOf(fullReport), loads, () => Promise.reject(offline))).toBe(offline);
});
