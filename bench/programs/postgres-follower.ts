// A node that follows a store in PostgreSQL, in a process of its own: the store and the hub of live delivery, without clients.
import { openHub } from '../../server/src/live/hub.ts';
import { openStore } from '../../server/src/store/open.ts';

/** What the parent is told on request: the position of the last report that the hub has delivered, and µs of CPU. */
export type FollowerState = { readonly position: number; readonly cpu: number };

const [url = ''] = process.argv.slice(2);
const store = await openStore(url, 'read');
const hub = await openHub({
  reports: store.reports,
  eventIds: { encode: String },
  feedIds: [],
  onDelivered: () => {},
  onTrouble: () => {},
});
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ position: hub.position(), cpu: user + system } satisfies FollowerState);
});
process.once('SIGTERM', async () => {
  hub.close();
  await store.close();
  process.exit();
});
process.send?.({});
