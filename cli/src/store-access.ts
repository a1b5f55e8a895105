// How commands open the store, and that they always close it.
import { openStore } from '@sealpost/server/store/open';
import { type Store, StoreError } from '@sealpost/server/store/store';

/** Opens a store for reading reports and changing administrative records, which any process may; closes it after the act. */
export async function withStore<T>(url: string, act: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(url, 'read', { isCommand: true });
  try {
    return await act(store);
  } finally {
    await store.close();
  }
}

/** Whether there is a store; any other reason why it cannot be opened is thrown. */
export const storeExists = (url: string): Promise<boolean> =>
  withStore(url, async () => true).catch((error: unknown) => {
    if (error instanceof StoreError && error.code === 'store_not_found') return false;
    throw error;
  });

/** As `withStore`, where a store that is not there yet is made: for the records that come before the first report. */
export async function withNewStore<T>(url: string, act: (store: Store) => Promise<T>): Promise<T> {
  if (!(await storeExists(url))) {
    const made = await openStore(url, 'write', { isCommand: true });
    await made.close();
  }
  return withStore(url, act);
}
