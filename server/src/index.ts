// The service, for programs that embed it: open a store, or run a whole node. `NodeHooks` lists what a program may wrap around a node: the clock of
// reports, what runs around a request and a live connection, and a path of the private listener. A program feeds a node by `node.write.ingest`.
export { resolveSettings, type SettingInputs, type Settings } from './config/config.ts';
export type { NodeHooks, WrappedNode, Wrapping } from './node/hooks.ts';
export { type Node, type NodeOptions, openNode } from './node/node.ts';
export { createStoreMemory, openStore, type StoreMemory } from './store/open.ts';
export { CorruptRecordError, type Store, type StoredReport, StoreError } from './store/store.ts';
