import { lookup } from 'node:dns/promises';
import { openSync, writeSync } from 'node:fs';
import { expect, test } from 'vitest';
import { explainFailure } from './failure.ts';

const failureOf = async (act: () => unknown): Promise<unknown> => {
  try {
    return await act();
  } catch (error) {
    return error;
  }
};

test('failure: a host without an address is named', async () => {
  const error = await failureOf(() => lookup('no-such-host.invalid'));
  expect(explainFailure(error)).toMatchObject({
    exitCode: 3,
    text: expect.stringMatching(/^The host no-such-host\.invalid has no address \(E\w+\)\. Check its name/),
  });
});

test('failure: a full disk behind standard output says what to do', async () => {
  const full = openSync('/dev/full', 'w');
  const error = await failureOf(() => writeSync(full, 'text'));
  expect(explainFailure(error)).toEqual({
    exitCode: 3,
    text: 'No space left on the disk that is written to. Free some, then run the command again.',
  });
});
