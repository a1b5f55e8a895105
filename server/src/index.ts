// The package's entry for programs: open a store, or run a whole node. People use the command `sealpost`.
export { resolveSettings, type SettingInputs, type Settings } from './config/config.ts';
export { type Node, type NodeOptions, openNode } from './node.ts';
export { createStoreMemory, openStore, type StoreMemory } from './store/open.ts';
export { CorruptRecordError, type Store, type StoredReport, StoreError } from './store/store.ts';
