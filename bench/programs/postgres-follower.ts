// A node that follows a store in PostgreSQL, in a process of its own: the store and live delivery, without clients.
import { openLiveDelivery } from '../../server/src/live/live-delivery.ts';
import { openStore } from '../../server/src/store/open.ts';

/** What the parent is told on request: the position of the last report that live delivery has sent, and µs of CPU. */
export type FollowerState = { readonly position: number; readonly cpu: number };

const [url = ''] = process.argv.slice(2);
const store = await openStore(url, 'read');
const delivery = await openLiveDelivery({
  reports: store.reports,
  eventIds: { encode: String },
  feedIds: [],
  onDelivered: () => {},
  onTrouble: () => {},
});
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ position: delivery.position(), cpu: user + system } satisfies FollowerState);
});
process.once('SIGTERM', async () => {
  delivery.close();
  await store.close();
  process.exit();
});
process.send?.({});
