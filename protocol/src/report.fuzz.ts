import fc from 'fast-check';
import * as AbiParameters from 'ox/AbiParameters';
import { expect, test } from 'vitest';
import { appendFeeToken } from './fee-token.ts';
import { parseFeedId, type TimeResolution } from './feed-id.ts';
import { decodeFullReport, decodeReportBody, encodeFullReport, encodeReportBody, ReportFormatError } from './report.ts';
import { type Field, type FieldType, type ReportBody, reportSchemas } from './report-schemas.ts';
import vectors from './vectors/reports.json' with { type: 'json' };

const hexBytes = (length: number) =>
  fc
    .uint8Array({ minLength: length, maxLength: length })
    .map((bytes) => `0x${Buffer.from(bytes).toString('hex')}` as const);

const arbitraryOf: Record<FieldType, (resolution: TimeResolution) => fc.Arbitrary<unknown>> = {
  bytes32: () => hexBytes(32),
  time: (resolution) => fc.integer({ min: 0, max: resolution === 'seconds' ? 2 ** 32 - 1 : Number.MAX_SAFE_INTEGER }),
  uint32: () => fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  uint64: () => fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  uint192: () => fc.bigInt({ min: 0n, max: 2n ** 192n - 1n }),
  int192: () => fc.bigInt({ min: -(2n ** 191n), max: 2n ** 191n - 1n }),
};

const bodyOf = (version: number, fields: readonly Field[], resolution: TimeResolution) => {
  const prefix = `0x${resolution === 'seconds' ? '0' : '1'}${version.toString(16).padStart(3, '0')}`;
  const feedId = hexBytes(30).map((rest) => parseFeedId(`${prefix}${rest.slice(2)}`));
  const values = fields.map(
    ({ name, type }) => [name, name === 'feedId' ? feedId : arbitraryOf[type](resolution)] as const,
  );
  return fc.record({
    version: fc.constant(version),
    ...Object.fromEntries(values),
  }) as unknown as fc.Arbitrary<ReportBody>; // built by the table of fields
};

const signature = fc.record({ r: hexBytes(32), s: hexBytes(32), v: fc.integer({ min: 0, max: 255 }) });

/** The ABI types that a body of this schema has, for an encoder other than ours. */
const abiTypesOf = (fields: readonly Field[], resolution: TimeResolution) =>
  fields.map(({ type }) => ({ type: type === 'time' ? (resolution === 'seconds' ? 'uint32' : 'uint64') : type }));

for (const [version, { fields }] of Object.entries(reportSchemas)) {
  for (const resolution of ['seconds', 'milliseconds'] as const) {
    test(`report: version ${version} in ${resolution}, decode undoes encode`, () => {
      fc.assert(
        fc.property(bodyOf(Number(version), fields, resolution), (body) => {
          expect(decodeReportBody(encodeReportBody(body))).toEqual(body);
        }),
        { numRuns: 100 },
      );
    });

    test(`report: version ${version} in ${resolution}, ox encodes to the same bytes`, () => {
      const types = abiTypesOf(fields, resolution);
      fc.assert(
        fc.property(bodyOf(Number(version), fields, resolution), (body) => {
          const named = body as unknown as Record<string, `0x${string}` | number | bigint>; // read by the names of the table
          const values = fields.map(
            ({ name }, i) => (types[i]?.type === 'uint64' ? BigInt(named[name] as number) : (named[name] as bigint)), // by the type of the field
          );
          expect(encodeReportBody(body)).toBe(AbiParameters.encode(types, values));
        }),
        { numRuns: 100 },
      );
    });
  }
}

const fullReports = fc.record({
  context: fc.record({ configDigest: hexBytes(32), epochAndRound: hexBytes(32), extraHash: hexBytes(32) }),
  body: fc.integer({ min: 0, max: 500 }).chain(hexBytes),
  signatures: fc.array(signature, { maxLength: 32 }),
});

test('full report: decode undoes encode for any context, body and signatures', () => {
  fc.assert(
    fc.property(fullReports, (report) => {
      expect(decodeFullReport(encodeFullReport(report))).toEqual(report);
    }),
    { numRuns: 300 },
  );
});

const envelopeTypes = ['bytes32[3]', 'bytes', 'bytes32[]', 'bytes32[]', 'bytes32'] as const;

test('full report: ox encodes to the same bytes, with a fee token and without', () => {
  fc.assert(
    fc.property(fullReports, hexBytes(20), ({ context, body, signatures }, token) => {
      const vs = Buffer.concat([Buffer.from(signatures.map(({ v }) => v)), Buffer.alloc(32 - signatures.length)]);
      const values = [
        [context.configDigest, context.epochAndRound, context.extraHash],
        body,
        signatures.map(({ r }) => r),
        signatures.map(({ s }) => s),
        `0x${vs.toString('hex')}`,
      ] as const;
      const fullReport = encodeFullReport({ context, body, signatures });
      expect(fullReport).toBe(AbiParameters.encode(AbiParameters.from(envelopeTypes), values));
      const argument = AbiParameters.encode(AbiParameters.from(['address']), [token]);
      expect(appendFeeToken(fullReport, token)).toBe(
        AbiParameters.encode(AbiParameters.from([...envelopeTypes, 'bytes']), [...values, argument]),
      );
    }),
    { numRuns: 300 },
  );
});

test.each(vectors.reports)('full report: $name cut at any byte is a decode error', ({ fullReport }) => {
  for (let length = 2; length < fullReport.length; length += 2) {
    expect(() => decodeReportBody(decodeFullReport(fullReport.slice(0, length)).body)).toThrow(ReportFormatError);
  }
});

test.each(vectors.reports)('body: $name cut at any byte is a decode error', ({ body }) => {
  for (let length = 2; length < body.length; length += 2) {
    expect(() => decodeReportBody(body.slice(0, length) as `0x${string}`)).toThrow(ReportFormatError);
  }
});

test('full report: any bytes decode to something that encodes back to them, or are a decode error', () => {
  const seedReport = fc.constantFrom(
    ...vectors.reports.map(({ fullReport }) => Buffer.from(fullReport.slice(2), 'hex')),
  );
  const change = fc.record({
    at: fc.nat(1_200),
    bytes: fc.uint8Array({ minLength: 1, maxLength: 40 }),
    cut: fc.boolean(),
  });
  fc.assert(
    fc.property(seedReport, fc.array(change, { maxLength: 3 }), (original, changes) => {
      const bytes = changes.reduce((report, { at, bytes: inserted, cut }) => {
        const index = at % (report.length + 1);
        return Buffer.concat([
          report.subarray(0, index),
          inserted,
          report.subarray(index + (cut ? 0 : inserted.length)),
        ]);
      }, original);
      const fullReport = `0x${bytes.toString('hex')}`;
      try {
        const full = decodeFullReport(fullReport);
        expect(encodeFullReport(full)).toBe(fullReport);
        expect(encodeReportBody(decodeReportBody(full.body))).toBe(full.body);
      } catch (error) {
        expect(error).toBeInstanceOf(ReportFormatError);
      }
    }),
    { numRuns: 1_000 },
  );
});
