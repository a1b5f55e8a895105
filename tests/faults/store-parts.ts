// Something to write to each part of a store, and whether it is there.
import type { Account, Store } from '../../server/src/store/store.ts';
import { act } from '../support/running-ingest.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';

const { report } = await createSignedReports();
const stream = secondStream(1);
const t0 = 1_763_200_000;
const nowMs = Date.UTC(2025, 10, 15);

const accountOf = (userId: string): Account => ({
  userId,
  name: userId,
  createdAt: '2025-11-15T00:00:00.000000Z',
  disabledAt: null,
  secrets: [],
  entitlements: ['public'],
  rateLimits: {},
});

/** Writes something, and says whether it is there. */
type Part = {
  readonly write: (store: Store) => Promise<unknown>;
  readonly isThere: (store: Store) => Promise<boolean>;
};

/** Something for each part of a store; another number gives something else. */
export const partsOf = (n: number): Readonly<Record<string, Part>> => {
  const [one, name] = [report(stream, t0 + n, t0 + n), `user-${n}`];
  return {
    report: {
      write: ({ reports }) => reports.append([one]),
      isThere: async ({ reports }) => (await reports.at([stream], t0 + n))[0] !== undefined,
    },
    account: {
      write: ({ admin }) => admin.update('account', [name], () => [accountOf(name)], act),
      isThere: async ({ admin }) => (await admin.get('account', name)) !== undefined,
    },
    'audit entry': {
      write: ({ admin }) => admin.log({ ...act, action: name }),
      isThere: async ({ admin }) =>
        (await admin.auditNewest(5)).some((entry) => 'action' in entry && entry.action === name),
    },
    usage: {
      write: ({ usage }) => usage.add([{ userId: name, day: '2025-11-15', route: 'latest', requests: 1 }], [], nowMs),
      isThere: async ({ usage }) => (await usage.list(name, '2025-11-15')).length === 1,
    },
    'rejected line': {
      write: ({ quarantine }) =>
        quarantine.add([{ atMs: nowMs, code: name, message: '', feedId: null, observationsMs: null, line: '' }]),
      isThere: async ({ quarantine }) => (await quarantine.list(5)).some(({ code }) => code === name),
    },
  };
};
