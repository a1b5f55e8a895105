import vectors from '@sealpost/protocol/vectors/verification.json' with { type: 'json' };
import { expect, test } from 'vitest';
import { formatUtc } from '../format.ts';
import { alterField } from './bytes.ts';
import { compareReports } from './difference.ts';
import { readReport } from './reading.ts';

const fullReportOf = (name: string) => vectors.cases.find((one) => one.name === name)?.fullReport as string; // one of the vectors
const signed = readReport(fullReportOf('2 of 4 signers'));
const altered = (id: string) => {
  const segment = signed.segments.find((one) => one.id === id) ?? { offset: 0, length: 0 };
  return readReport(alterField(signed.fullReport, segment));
};
const compare = (here: typeof signed) => compareReports(signed, here, formatUtc);

test('difference: a report is the same as itself', () => {
  expect(compare(signed)).toEqual({ values: [], bytes: new Map() });
});

test('difference: an altered price is found, with both values and the byte', () => {
  const { values, bytes } = compare(altered('body price'));
  expect(values).toEqual([
    { name: 'price', link: 'body price', signed: '3,865.05212678232035', here: '3,865.052126782320350001' },
  ]);
  expect(bytes).toEqual(new Map([['body price', new Set([31])]]));
});

test('difference: an altered time is shown as a time', () => {
  const [value] = compare(altered('body observationsTimestamp')).values;
  expect(value).toMatchObject({ signed: '2025-11-15 09:46:40 UTC', here: '2025-11-15 09:46:41 UTC' });
});

test('difference: where only the head is known, its fields are compared as such and the rest by word', () => {
  const isOf = (text: string) => readReport(text.replace(signed.feedId.slice(2), `0fff${signed.feedId.slice(6)}`));
  const names = (id: string) =>
    compareReports(isOf(signed.fullReport), isOf(altered(id).fullReport), formatUtc).values.map(({ name }) => name);
  expect([names('body expiresAt'), names('body price')]).toEqual([['expiresAt'], ['word 7']]);
});

test('difference: the context and signatures are compared too', () => {
  expect(compare(altered('context extraHash')).values).toMatchObject([{ name: 'extraHash' }]);
  const { values, bytes } = compare(altered('s 1'));
  expect(values).toMatchObject([{ name: 'signature 2', link: 'signature 1' }]);
  expect([...bytes.keys()]).toEqual(['s 1']);
});

test('difference: a report with more signatures than the signed one differs in these', () => {
  const { values } = compare(readReport(fullReportOf('one signature too many')));
  expect(values.map(({ name }) => name)).toContain('signature 3');
});
