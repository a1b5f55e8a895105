// What nodes on one store exchange: the contract for every engine.

/** How nodes on one store exchange short-lived values, such as the tokens that they granted. */
export type NodeExchange = {
  /**
   * Publishes a value, if there is one, and returns what each other node published since the last call. Values older than a second are
   * not returned. One call at a time.
   */
  readonly exchange: (told: Uint8Array | undefined) => Promise<readonly Uint8Array[]>;
};

/** A running node, by a name that no other node has, and the ids of the keys that it can open secrets with. */
export type KeyHolder = { readonly node: string; readonly keyIds: readonly string[] };

/** A node that has not said so for this long is not running. */
export const keyHolderFreshMs = 5_000;

/** Which keys the running nodes have. None of it lasts. */
export type KeyHolders = {
  readonly announce: (holder: KeyHolder) => Promise<void>;
  readonly withdraw: (node: string) => Promise<void>;
  /** Those that said so within the last seconds, each of them once. */
  readonly list: () => Promise<readonly KeyHolder[]>;
};
