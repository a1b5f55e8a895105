// One thread that does nothing but recover public keys: the rate that no verified ingest can exceed.
import { parentPort, workerData } from 'node:worker_threads';
import { decodeFullReport, reportDigest } from '@sealpost/protocol';
import { openSignatureEngine } from '../../server/src/ingest/verification.ts';

const { recoverPublicKey } = await openSignatureEngine();
const signed = (workerData as readonly string[]).map(decodeFullReport).flatMap((report) => {
  const digest = reportDigest(report);
  return report.signatures.map(({ r, s, v }) => ({
    digest,
    signature: Uint8Array.from(Buffer.from(`0${v}${r.slice(2)}${s.slice(2)}`, 'hex')),
  }));
});

parentPort?.on('message', (count: number) => {
  for (let i = 0; i < count; i++) {
    const { signature, digest } = signed[i % signed.length] as (typeof signed)[number]; // i modulo its length
    recoverPublicKey(signature, digest);
  }
  parentPort?.postMessage('done');
});
