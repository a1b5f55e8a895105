import { parseFeedId, type ReportBody } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { marketStatusOf } from '../market-status.ts';
import { describeFields, quotedUnitOf } from './report-fields.ts';

const head = (feedId: string, unit: number) =>
  ({
    feedId: parseFeedId(feedId),
    validFromTimestamp: 1_700_000_000 * unit,
    observationsTimestamp: 1_700_000_001 * unit,
    nativeFee: 25_872_872_271_800n,
    linkFee: 3n,
    expiresAt: 1_702_592_001 * unit,
  }) as const;

const advanced: ReportBody = {
  version: 11,
  ...head(`0x100b${'1'.repeat(60)}`, 1_000),
  mid: 101n * 10n ** 18n,
  lastSeenTimestampNs: 1_700_000_001_123_456_700n,
  bid: 100n * 10n ** 18n,
  bidVolume: -5n,
  ask: 102n * 10n ** 18n,
  askVolume: 7n,
  lastTradedPrice: 101n * 10n ** 18n,
  marketStatus: 3,
};

const lineOf = (body: ReportBody, name: string) => describeFields(body).find((line) => line.name === name);

test('fields: a number keeps its integer and has its unit', () => {
  expect(lineOf(advanced, 'bidVolume')).toEqual({
    name: 'bidVolume',
    type: 'int192',
    unit: 'amount',
    unitText: 'amount × 10¹⁸',
    about: 'The volume at the bid.',
    raw: '-5',
    reading: { kind: 'decimal', value: -5n, of: '' },
  });
  expect(lineOf(advanced, 'linkFee')?.reading).toEqual({ kind: 'decimal', value: 3n, of: 'LINK' });
});

test('fields: prices are in the quote asset, a rate also in percent', () => {
  const unitOf = (body: ReportBody, name: string) =>
    describeFields(body).flatMap((line) => (line.name === name ? [quotedUnitOf(line, 'USD')] : []));
  const rate: ReportBody = {
    version: 5,
    ...head(`0x0005${'1'.repeat(60)}`, 1),
    rate: 41_814n * 10n ** 12n,
    timestamp: 1,
    duration: 1,
  };
  expect([unitOf(advanced, 'mid'), unitOf(advanced, 'bidVolume'), unitOf(advanced, 'linkFee')].flat()).toEqual([
    'USD',
    '',
    'LINK',
  ]);
  expect(unitOf(rate, 'rate')).toEqual(['= 4.1814 %']);
});

test('fields: a stream in milliseconds has them in type, unit and value', () => {
  const line = lineOf(advanced, 'validFromTimestamp');
  expect([line?.type, line?.unitText, line?.raw]).toEqual(['uint64', 'Unix time in milliseconds', '1700000000000']);
  expect(line?.reading).toEqual({ kind: 'time', ms: 1_700_000_000_000, fraction: '' });
});

test('fields: a stream in seconds has them in type, unit and value', () => {
  const body: ReportBody = { version: 2, ...head(`0x0002${'1'.repeat(60)}`, 1), price: 1n };
  const line = lineOf(body, 'observationsTimestamp');
  expect([line?.type, line?.unitText, line?.raw]).toEqual(['uint32', 'Unix time in seconds', '1700000001']);
  expect(line?.reading).toEqual({ kind: 'time', ms: 1_700_000_001_000, fraction: '' });
});

test('fields: nanoseconds keep the digits that a Date cannot hold', () => {
  expect(lineOf(advanced, 'lastSeenTimestampNs')?.reading).toEqual({
    kind: 'time',
    ms: 1_700_000_001_123,
    fraction: '4567',
  });
});

test('fields: a duration is not a time, and an activation of zero means no change', () => {
  const rate: ReportBody = {
    version: 5,
    ...head(`0x0005${'1'.repeat(60)}`, 1),
    rate: 1n,
    timestamp: 1_700_000_000,
    duration: 86_400,
  };
  expect(lineOf(rate, 'duration')).toMatchObject({
    unitText: 'seconds',
    reading: { kind: 'words', text: '86400 seconds' },
  });
  const token: ReportBody = {
    version: 10,
    ...head(`0x000a${'1'.repeat(60)}`, 1),
    lastUpdateTimestamp: 0n,
    price: 1n,
    marketStatus: 2,
    currentMultiplier: 1n,
    newMultiplier: 1n,
    activationDateTime: 0,
    tokenizedPrice: 1n,
  };
  expect(lineOf(token, 'activationDateTime')?.reading).toEqual({ kind: 'words', text: 'No change planned' });
});

test('market status: the same code has another meaning in another schema', () => {
  expect(marketStatusOf(4, 2)).toEqual({ text: 'Open', isOpen: true });
  expect(marketStatusOf(8, 1)).toEqual({ text: 'Closed', isOpen: false });
  expect(marketStatusOf(11, 1)).toEqual({ text: 'Pre-market', isOpen: true });
  expect(marketStatusOf(11, 5)).toEqual({ text: 'Closed', isOpen: false });
  expect(marketStatusOf(10, 9)).toEqual({ text: 'Unknown code 9', isOpen: undefined });
});
