// Signed reports of every schema version, with values at the ends of their ranges.
import {
  encodeReportBody,
  type FeedId,
  type Field,
  parseFeedId,
  type ReportBody,
  reportSchemas,
  type SchemaVersion,
} from '@sealpost/protocol';
import { createNetwork } from '@sealpost/simulator';
import type { StoredReport } from '../../../server/src/store/store.ts';

export const schemaVersions = Object.keys(reportSchemas).map(Number) as readonly SchemaVersion[]; // the keys of the table

/** A stream of a schema, with timestamps in seconds unless others are asked for. */
export const streamOfSchema = (version: SchemaVersion, nibble: 0 | 1 = 0): FeedId =>
  parseFeedId(`0x${nibble}${version.toString(16).padStart(3, '0')}${`${version}`.padStart(60, 'a')}`);

export type SchemaReport = StoredReport & { readonly body: ReportBody };

/** The largest number that DECIMAL(38,18) holds, times 10^18. */
export const decimalMax = 10n ** 38n - 1n;

const signed = [0n, 1n, -1n, decimalMax, -decimalMax, 97_012_345678901234567890n, -(10n ** 18n)];
const values: Readonly<Record<Field['type'], readonly (bigint | number | string)[]>> = {
  int192: signed,
  uint192: signed.map((value) => (value < 0n ? -value : value)),
  uint64: [0n, 1n, 2n ** 64n - 1n, 1_763_200_000_123_456_789n, 2n ** 63n],
  uint32: [0, 1, 2 ** 32 - 1, 1_763_200_000],
  bytes32: [`0x${'0'.repeat(64)}`, `0x${'ab'.repeat(32)}`, `0x${'f'.repeat(64)}`],
  time: [],
};

/** Makes reports of any schema; `n` picks their values. */
export const createSchemaReports = async () => {
  const { sign, signerSet } = await createNetwork({ seed: 'schemas' });
  const report = (
    feedId: FeedId,
    version: SchemaVersion,
    observations: number,
    n: number,
    changes: Readonly<Record<string, bigint | number>> = {},
  ): SchemaReport => {
    const unitMs = feedId.startsWith('0x1') ? 1 : 1_000;
    const times: Readonly<Record<string, number>> = {
      validFromTimestamp: observations,
      observationsTimestamp: observations,
      expiresAt: observations + (30 * 86_400 * 1_000) / unitMs,
    };
    const fields = (reportSchemas[version].fields as readonly Field[]).map(({ name, type }, i) => {
      const choices = values[type];
      return [name, name === 'feedId' ? feedId : (times[name] ?? choices[(n + i) % choices.length])] as const;
    });
    const body = { version, ...Object.fromEntries(fields), ...changes } as unknown as ReportBody; // the table's own fields
    const fullReport = Buffer.from(sign(encodeReportBody(body), n + 1).slice(2), 'hex');
    const ms = observations * unitMs;
    return { feedId, validFromMs: ms, observationsMs: ms, fullReport, body };
  };
  return { report, signerSets: new Map([[signerSet.configDigest, signerSet]]) };
};
