import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { castOf } from './cast.ts';
import { readPlan } from './plan.ts';

test.each([
  ['a folder', tmpdir(), `Not a file but a folder: ${tmpdir()}`],
  ['missing', join(tmpdir(), 'no-such-recording'), `No such file: ${join(tmpdir(), 'no-such-recording')}`],
])('cast: a file to replay that is %s is a wrong argument, named', async (_, replay, message) => {
  const plan = await readPlan({ replay }, 0);
  await expect(castOf(plan, 0)).rejects.toMatchObject({ exitCode: 2, message });
});
