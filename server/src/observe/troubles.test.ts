import { expect, test } from 'vitest';
import { watchFollowing, watchTroubles } from './troubles.ts';

test('following: the probe names the newest reason, and is told of a change only', () => {
  let changes = 0;
  const watch = watchFollowing(() => {
    changes += 1;
  });
  const why = 'new reports and changes are not read from the database:';
  watch.observe({ kind: 'followingStopped', reason: 'The database is unavailable: ECONNREFUSED.', isNews: true });
  watch.observe({ kind: 'followingStopped', reason: 'The database rejects this: no such user.', isNews: false });
  watch.observe({ kind: 'followingStopped', reason: 'The database rejects this: no such user.', isNews: false });
  expect(watch.describe()).toEqual([`${why} The database rejects this: no such user.`]);
  expect(changes).toBe(2);
  watch.observe({ kind: 'followingResumed', seconds: 12 });
  expect(watch.describe()).toEqual([]);
  expect(changes).toBe(3);
});

test('reloads: the probe names the newest reason for as long as reloads fail', () => {
  const watch = watchTroubles();
  watch.observe({ kind: 'adminReloadFailed', error: new Error('locked'), isNews: true });
  watch.observe({ kind: 'adminReloadFailed', error: new Error('damaged'), isNews: false });
  watch.observe({ kind: 'followingResumed', seconds: 12 });
  expect(watch.describe()).toEqual([
    'accounts, streams and signers are those from before their last change, which cannot be read: damaged',
  ]);
  watch.observe({ kind: 'adminReloadRecovered', seconds: 12 });
  expect(watch.describe()).toEqual([]);
});

test('durability: the probe names the risk until there is none, beside other troubles', () => {
  const watch = watchTroubles();
  watch.observe({ kind: 'durabilityReduced', reason: 'fsync is off.', isNews: true });
  watch.observe({ kind: 'adminReloadFailed', error: new Error('locked'), isNews: true });
  expect(watch.describe()).toEqual([expect.stringMatching(/locked$/), 'store: fsync is off.']);
  watch.observe({ kind: 'durabilityRestored', seconds: 12 });
  expect(watch.describe()).toEqual([expect.stringMatching(/locked$/)]);
});
