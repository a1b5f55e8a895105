import type { ApiError } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { secondStream } from '../../../tests/support/signed-reports.ts';
import { authorise } from './query.ts';

const [readable, first, second] = [secondStream(1), secondStream(2), secondStream(3)];

const refusalOf = (query: Parameters<typeof authorise>[0]): ApiError | undefined => {
  try {
    authorise(query, new Set([readable]));
    return undefined;
  } catch (error) {
    return error as ApiError; // nothing else is thrown
  }
};

test('authorize: the error names the first stream that may not be read, alone or among several', () => {
  expect(refusalOf({ feedIds: [readable] })).toBeUndefined();
  for (const query of [{ feedId: first }, { feedIds: [readable, first, second] }])
    expect(refusalOf(query)).toMatchObject({
      code: 'stream_not_accessible',
      message: `Stream ${first} does not exist or this account may not read it.`,
      details: { feedID: first },
    });
});
