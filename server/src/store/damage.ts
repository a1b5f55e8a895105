// What is known to be damaged in a store: collected where records are read, told once each, listed for probes and checks (D120).
import { CorruptRecordError, type Damage } from './store.ts';

export type DamageLog = {
  /** Remembers damage; the same record is told once. */
  readonly note: (damage: Damage) => void;
  readonly list: () => readonly Damage[];
  /** Runs `read`; a corrupt record is noted and becomes undefined. */
  readonly contain: <T>(place: Omit<Damage, 'reason'>, read: () => T) => T | undefined;
};

/** Records remembered at most; a store with more of them needs a repair, not a longer list. */
const damageMax = 1_000;

/** `tell` gets each damaged record once, with the number known by then. */
export const createDamageLog = (tell: (damage: Damage, total: number) => void = () => {}): DamageLog => {
  const known = new Map<string, Damage>();
  const note = (damage: Damage): void => {
    const name = `${damage.table} ${damage.key}`;
    if (known.has(name) || known.size >= damageMax) return;
    known.set(name, damage);
    tell(damage, known.size);
  };
  return {
    note,
    list: () => [...known.values()],
    contain: (place, read) => {
      try {
        return read();
      } catch (error) {
        if (!(error instanceof CorruptRecordError)) throw error;
        note({ ...place, reason: error.message });
        return undefined;
      }
    },
  };
};
