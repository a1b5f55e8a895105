// What nodes on one store exchange: the contract for every engine.

/** How nodes on one store exchange short-lived values, such as the tokens that they granted. */
export type NodeExchange = {
  /**
   * Publishes a value, if there is one, and returns what each other node published since the last call. Values older than a second are
   * not returned. One call at a time.
   */
  readonly exchange: (told: Uint8Array | undefined) => Promise<readonly Uint8Array[]>;
};

/** How much is kept: days, and bytes of pages; null is unlimited. */
export type RetentionLimits = { readonly days: number; readonly bytes: number | null };

/** A running node, by a name that no other node has, the ids of the keys that it can open secrets with, and its retention (older releases announce none). */
export type KeyHolder = {
  readonly node: string;
  readonly keyIds: readonly string[];
  readonly retention?: RetentionLimits | undefined;
};

/** A node that has not said so for this long is not running. */
export const keyHolderFreshMs = 5_000;

/** What the running nodes announce. None of it lasts. */
export type KeyHolders = {
  readonly announce: (holder: KeyHolder) => Promise<void>;
  readonly withdraw: (node: string) => Promise<void>;
  /** Those that said so within the last seconds, each of them once. */
  readonly list: () => Promise<readonly KeyHolder[]>;
};

/** What nodes delete by, and lower limits that wait: they apply from a time on, unless nodes announce higher ones until then. */
export type AppliedRetention = RetentionLimits & {
  readonly waiting?: RetentionLimits & { readonly fromMs: number };
  /** Present while more is due than retention usually deletes at once, which waits until then; 0 once the operator has confirmed it. */
  readonly deletionFromMs?: number;
};

/** Retention as all nodes on a store apply it; undefined before the first of them has run. */
export type RetentionRecord = {
  readonly get: () => Promise<AppliedRetention | undefined>;
  /** Changes it in one transaction and returns it; durable when it resolves. `change` gets what is stored, or nothing where that is damaged. */
  readonly update: (change: (current: AppliedRetention | undefined) => AppliedRetention) => Promise<AppliedRetention>;
};
