// What a consumer pays for a report off-chain: decoding it, and verifying its quorum, beside the bare library that does the heavy part.
import { decode, verify } from '@sealpost/client';
import { decodeFullReport, parseSignerSets, portableEngine, reportDigest, type Signature } from '@sealpost/protocol';
import * as AbiParameters from 'ox/AbiParameters';
import vectors from '../protocol/src/vectors/verification.json' with { type: 'json' };
import { cpuPerCall, type Measurement, perSecond } from './measure.ts';

const envelope = AbiParameters.from(['bytes32[3]', 'bytes', 'bytes32[]', 'bytes32[]', 'bytes32']);
const bodyOfVersion3 = AbiParameters.from([
  ...(['bytes32', 'uint32', 'uint32', 'uint192', 'uint192'] as const),
  ...(['uint32', 'int192', 'int192', 'int192'] as const),
]);

/** Recovery id, r, s. */
const toBytes = ({ r, s, v }: Signature): Uint8Array =>
  Buffer.from(`${v.toString(16).padStart(2, '0')}${r.slice(2)}${s.slice(2)}`, 'hex');

/** A figure of the client, the bare one, and what the client takes of it. */
const compare = (name: string, ours: () => unknown, bareName: string, bare: () => unknown): readonly Measurement[] => {
  const [own, alone] = [cpuPerCall(ours), cpuPerCall(bare)];
  return [
    { name, value: own, unit: 'µs CPU', note: `${perSecond(own).toFixed(0)} reports/s of one core` },
    { name: `  ${bareName}`, value: alone, unit: 'µs CPU' },
    { name: `  ratio to ${bareName.split(':')[0]}`, value: own / alone, unit: '×' },
  ];
};

export const benchClient = async (): Promise<readonly Measurement[]> => {
  const signers = parseSignerSets(vectors.signerSets);
  return ['2 of 4 signers', '6 of 16 signers'].flatMap((name) => {
    const fullReport = vectors.cases.find((vector) => vector.name === name)?.fullReport as `0x${string}`; // both are there
    if (!verify(fullReport, signers).ok) throw new Error(`The vector ${name} does not verify.`);
    const full = decodeFullReport(fullReport);
    const digest = reportDigest(full);
    const signatures = full.signatures.map(toBytes);
    return [
      ...compare(
        `decode, ${name}`,
        () => decode(fullReport),
        'ox alone: envelope and body',
        () => {
          const [, body] = AbiParameters.decode(envelope, fullReport);
          return AbiParameters.decode(bodyOfVersion3, body as `0x${string}`); // the second of the five is bytes
        },
      ),
      ...compare(
        `verify and decode, ${name}`,
        () => verify(fullReport, signers),
        `noble alone: ${signatures.length} recoveries`,
        () => signatures.map((signature) => portableEngine.recoverPublicKey(signature, digest)),
      ),
    ];
  });
};
