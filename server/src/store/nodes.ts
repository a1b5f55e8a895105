// What the nodes of a store tell each other, and others of themselves: the contract of every engine.

/** How the nodes that share a store tell each other what need not last, such as the tokens that they gave. */
export type NodeExchange = {
  /**
   * Tells the other nodes something, if there is something, and hears what each of them told since the last call. What is older than a
   * second is heard by nobody. One call at a time.
   */
  readonly exchange: (told: Uint8Array | undefined) => Promise<readonly Uint8Array[]>;
};

/** A running node and the ids of the keys that it can open secrets with. */
export type KeyHolder = { readonly node: string; readonly keyIds: readonly string[] };

/** A node that has not said so for this long is not running. */
export const keyHolderFreshMs = 5_000;

/** Which keys the running nodes have. None of it lasts. */
export type KeyHolders = {
  readonly announce: (holder: KeyHolder) => Promise<void>;
  readonly withdraw: (node: string) => Promise<void>;
  /** Those that said so within the last seconds. */
  readonly list: () => Promise<readonly KeyHolder[]>;
};
