import { reportSchemas } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { captionOf, hasBand } from './legend.tsx';

const feedIdOf = (version: number): string => `0x${version.toString(16).padStart(4, '0')}${'0'.repeat(60)}`;

test('legend: the caption names a band only where reports have bid and ask', () => {
  const versions = [...Object.keys(reportSchemas).map(Number), 999];
  expect(versions.filter((version) => hasBand(feedIdOf(version)))).toEqual([1, 3, 11, 13, 14]);
  expect(captionOf('reports', false, true)).toContain('bid to ask');
  expect(captionOf('reports', false, false)).toBe(
    'Each bar covers the seconds in which a report is valid. No bar means no report.',
  );
});
