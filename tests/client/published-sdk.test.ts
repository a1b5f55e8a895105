// The published SDK, an independent client, must decode the reports and sign requests in the same way.
import { createRequire } from 'node:module';
import { signatureOf } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import reportVectors from '../../protocol/src/vectors/reports.json' with { type: 'json' };
import signingVectors from '../../protocol/src/vectors/request-signing.json' with { type: 'json' };

const require = createRequire(import.meta.url);
const { decodeReport, generateAuthHeaders } = require('@chainlink/data-streams-sdk') as Sdk; // it has no types

type Sdk = {
  decodeReport: (fullReport: string, feedId: string) => Record<string, unknown>;
  generateAuthHeaders: (
    userId: string,
    secret: string,
    method: string,
    url: string,
    body?: string,
    timestampMs?: number,
  ) => Record<string, string>;
};

// It reads ids with second resolution, and of those the versions 2 to 13.
const readable = reportVectors.reports.filter(
  ({ version, timeResolution }) => version > 1 && version < 14 && timeResolution === 'seconds',
);

test.each(readable)('published SDK: decodes $name to the same values', ({ version, fullReport, decoded }) => {
  const { version: printed, ...values } = decodeReport(fullReport, decoded.feedId);
  expect(printed).toBe(`V${version}`);
  expect(Object.keys(values)).toEqual(
    Object.keys(decoded).filter((name) => !['feedId', 'validFromTimestamp', 'observationsTimestamp'].includes(name)),
  );
  for (const [name, value] of Object.entries(values)) {
    // It turns some uint64 fields into doubles, which round nanoseconds.
    const ours = (decoded as Record<string, string>)[name]; // read by name
    expect(value, name).toBe(typeof value === 'number' ? Number(ours) : BigInt(ours as string)); // decimal text
  }
});

test('published SDK: it read every version from 2 to 13', () => {
  expect(readable.map(({ version }) => version)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
});

// It parses the target as a URL first, so only targets that survive that unchanged can be compared.
const origin = 'https://api.example';
const comparable = signingVectors.cases.filter(({ target }) => {
  const { pathname, search } = new URL(`${origin}${target}`);
  return pathname + search === target && !target.startsWith('//');
});

test.each(comparable)(
  'published SDK: signs alike: $name',
  ({ method, target, body, userId, timestampMs, secret, signature }) => {
    const headers = generateAuthHeaders(userId, secret, method, `${origin}${target}`, body, timestampMs);
    expect(headers['X-Authorization-Signature-SHA256']).toBe(signature);
    expect(signatureOf({ method, target, body, userId, timestampMs }, secret)).toBe(signature);
  },
);

test('published SDK: most signing vectors could be compared', () => {
  expect(comparable.length).toBeGreaterThanOrEqual(25);
});
