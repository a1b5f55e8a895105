// Retention as it is applied, in the administrative environment: any process may change it, and older releases overlook its table.
import type { DamageLog } from '../damage.ts';
import { decodeKeyedRecord, encodeKeyedRecord } from '../format/record.ts';
import type { AppliedRetention, RetentionRecord } from '../nodes.ts';
import { type Environment, openTable, type Table } from './environment.ts';

const key = Buffer.from('applied');

/** `administer` makes a change, in its turn. */
export const createLmdbRetention = (
  environment: Environment,
  damage: DamageLog,
  administer: (change: () => void) => Promise<void>,
): RetentionRecord => {
  const table: Table | undefined = openTable(environment, 'retention'); // undefined on read-only media
  const read = (): AppliedRetention | undefined => {
    const value = table?.get(key);
    if (value === undefined) return undefined;
    const decode = () => decodeKeyedRecord<AppliedRetention>(key, value, 'the retention that is applied');
    return damage.contain({ table: 'retention', key: 'applied' }, decode);
  };
  return {
    get: async () => {
      environment.root.resetReadTxn();
      return read();
    },
    update: async (change) => {
      let applied: AppliedRetention | undefined;
      await administer(() =>
        environment.root.transactionSync(() => {
          applied = change(read());
          table?.put(key, encodeKeyedRecord(key, applied));
        }),
      );
      return applied as unknown as AppliedRetention; // set by the change, which has run
    },
  };
};
