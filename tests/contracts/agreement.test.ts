import { expect, test } from 'vitest';
import { alterations, runAgreement } from './agreement.ts';

/** `npm run bar -- onchain` compares 10,000. */
const count = 200;

test('agreement: our contract accepts exactly what verify accepts, and so do the published contracts, but for the encoding', async () => {
  const { reports, accepted, publishedOnly, disagreements } = await runAgreement(count, 1);
  expect(disagreements).toEqual([]);
  expect(reports).toBe(count);
  expect(accepted).toBeGreaterThan(count / 4);
  expect(accepted).toBeLessThan(count / 2);
  // D179: these have bytes that ABI decoders skip.
  const loose = [
    'extended',
    'extended by other bytes',
    'fee token inside',
    'tail moved to the end',
    'vs with bytes after its signatures',
  ];
  expect(Object.keys(publishedOnly)).toEqual(expect.arrayContaining(loose));
  expect(Object.keys(alterations).length).toBeGreaterThan(20);
});
