import type { DecodedReport } from '@sealpost/client';
import { expect, test } from 'vitest';
import { streamStateOf } from './stream-state.tsx';

const withMarket = (version: 4 | 11, marketStatus: number) => ({
  decoded: { version, fields: { marketStatus } } as unknown as DecodedReport,
}); // of its fields, only these decide
const live = { status: 'live' } as const;

test('state: closed by the market status of the newest report, whose codes depend on the schema', () => {
  expect(streamStateOf(live, withMarket(4, 1), false)).toBe('closed');
  expect(streamStateOf(live, withMarket(4, 2), false)).toBe('open');
  expect(streamStateOf(live, withMarket(11, 1), false)).toBe('open');
  expect(streamStateOf(live, withMarket(11, 5), false)).toBe('closed');
  const decoded = { version: 3, fields: {} } as unknown as DecodedReport; // as above
  expect(streamStateOf(live, { decoded }, false)).toBe('open');
});

test('state: ended goes before all others; empty only once the server has said so', () => {
  expect(streamStateOf({ status: 'decommissioned' }, withMarket(4, 1), false)).toBe('ended');
  expect(streamStateOf({ status: 'decommissioned' }, undefined, true)).toBe('ended');
  expect(streamStateOf({ status: 'testing' }, undefined, true)).toBe('empty');
  expect(streamStateOf(live, undefined, false)).toBe('loading');
});

test('state: unknown if the fields of the newest report are not known, unless the stream has ended', () => {
  expect(streamStateOf(live, { decoded: undefined }, false)).toBe('unknown');
  expect(streamStateOf({ status: 'decommissioned' }, { decoded: undefined }, false)).toBe('ended');
});
