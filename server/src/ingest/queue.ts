// The one queue between lines that arrive and their acknowledgment. It is bounded, serves senders in turn, and keeps the order of each. Items are prepared
// (verified) in pieces of several senders at once, then finished (appended) in batches, one batch at a time (D158).
import { StoreError } from '../store/store.ts';

/** Items that were submitted together, prepared. */
export type PreparedJob<Key, Ready> = { readonly key: Key | undefined; readonly items: readonly Ready[] };

export type QueueParts<Key, Item, Ready, Result> = {
  /** Items in the queue; more wait outside. */
  readonly itemsMax: number;
  /** Items that are prepared at once. */
  readonly preparingMax: number;
  /** Items of one job that are prepared together: what another sender waits for. */
  readonly pieceMax: number;
  /** A batch takes no further job once it has this many items. */
  readonly batchMax: number;
  readonly prepare: (items: readonly Item[]) => Promise<readonly Ready[]>;
  /** The result of each job. When it rejects, all jobs of the batch have failed. */
  readonly finish: (batch: readonly PreparedJob<Key, Ready>[]) => Promise<readonly PromiseSettledResult<Result>[]>;
};

/** A queue in which every sender is an object, its key. Jobs without a key are those of one more sender. */
export function createKeyedQueue<Key extends object, Item, Ready, Result>(parts: QueueParts<Key, Item, Ready, Result>) {
  /** `jobs` are those that are not being finished, in order; `held` counts the items in the queue. Behind a `failure` nothing may be stored (D102). */
  type Sender = { readonly key: Key | undefined; jobs: Job[]; held: number; failure?: unknown };
  /** `next` is where its next piece begins. */
  type Job = {
    readonly sender: Sender;
    readonly items: readonly Item[];
    readonly size: number;
    readonly ready: Ready[];
    next: number;
    unprepared: number;
    hasEntered: boolean;
    readonly entered: () => void;
    readonly resolve: (result: Result) => void;
    readonly reject: (error: unknown) => void;
  };
  const others: Sender = { key: undefined, jobs: [], held: 0 };
  const known = new WeakMap<Key, Sender>();
  let senders: readonly Sender[] = []; // those with jobs; the one that was served longest ago is first
  let free = parts.itemsMax;
  let preparing = 0;
  let isFinishing = false;
  let isClosed = false;
  let noteEmpty = (): void => {};

  const senderOf = (key: Key | undefined): Sender => {
    if (key === undefined) return others;
    const sender = known.get(key) ?? { key, jobs: [], held: 0 };
    known.set(key, sender);
    return sender;
  };
  const moveToEnd = (sender: Sender): void => {
    senders = [...senders.filter((one) => one !== sender), sender];
  };
  const release = ({ sender, size, hasEntered }: Job): void => {
    sender.held -= hasEntered ? size : 0;
    free += hasEntered ? size : 0;
    if (sender.held === 0 && sender.jobs.length === 0) senders = senders.filter((one) => one !== sender);
  };
  /** Rejects the jobs of a sender from one on, except those that are being finished. */
  const drop = (sender: Sender, from: number, error: unknown): void => {
    if (sender.key !== undefined) sender.failure = error;
    for (const job of sender.jobs.splice(from)) {
      release(job);
      job.reject(error);
    }
  };
  const fail = (job: Job, error: unknown): void => {
    const { jobs } = job.sender;
    const place = jobs.indexOf(job); // -1 when it was being finished: all others are behind it
    job.sender.jobs = jobs.filter((one) => one !== job);
    release(job);
    job.reject(error);
    drop(job.sender, Math.max(0, place), behind(error));
  };

  const admit = (): void => {
    for (;;) {
      // A sender in the queue may have no more than it leaves free, so that another one always gets in.
      const mayEnter = ({ held }: Sender, job: Job | undefined) => job && (held === 0 || held + job.size <= free);
      const sender = senders.find((one) => mayEnter(one, one.jobs.find(isOutside)));
      const job = sender?.jobs.find(isOutside);
      if (sender === undefined || job === undefined || job.size > free) return;
      moveToEnd(sender);
      sender.held += job.size;
      free -= job.size;
      job.hasEntered = true;
      job.entered();
    }
  };
  const preparePiece = async (job: Job): Promise<void> => {
    const from = job.next;
    const items = job.items.slice(from, from + parts.pieceMax);
    job.next += items.length;
    preparing += items.length;
    try {
      for (const [i, one] of (await parts.prepare(items)).entries()) job.ready[from + i] = one;
      job.unprepared -= items.length;
    } catch (error) {
      if (job.sender.jobs.includes(job)) fail(job, error); // else it failed before
    }
    preparing -= items.length;
    advance();
  };
  const prepareNext = (): void => {
    while (preparing < parts.preparingMax) {
      const sender = senders.find(({ jobs }) => jobs.some(hasPieces));
      const job = sender?.jobs.find(hasPieces);
      if (sender === undefined || job === undefined) return;
      moveToEnd(sender);
      void preparePiece(job);
    }
  };
  const takeBatch = (): readonly Job[] => {
    const batch: Job[] = [];
    for (let size = 0; size < parts.batchMax; ) {
      const sender = senders.find(({ jobs: [job] }) => job?.hasEntered && job.unprepared === 0);
      const job = sender?.jobs.shift();
      if (sender === undefined || job === undefined) break;
      moveToEnd(sender);
      batch.push(job);
      size += job.size;
    }
    return batch;
  };
  const finishNext = async (): Promise<void> => {
    const batch = isFinishing ? [] : takeBatch();
    if (batch.length === 0) return;
    isFinishing = true;
    try {
      const results = await parts.finish(batch.map(({ sender: { key }, ready: items }) => ({ key, items })));
      for (const [i, job] of batch.entries()) {
        const result = results[i] as PromiseSettledResult<Result>; // one for each
        if (result.status === 'rejected') fail(job, result.reason);
        else {
          release(job);
          job.resolve(result.value);
        }
      }
    } catch (error) {
      for (const job of batch) fail(job, error);
      if (error instanceof StoreError) for (const sender of senders) drop(sender, 0, behind(error));
    }
    isFinishing = false;
    advance();
  };
  const advance = (): void => {
    admit();
    prepareNext();
    void finishNext();
    if (senders.length === 0 && !isFinishing) noteEmpty();
  };

  return {
    /**
     * Resolves once the items are finished, after everything that was submitted before with the same key. `entered` is called when they have room: who
     * waits for it before it reads more keeps memory bounded. When a job fails, so do those of its sender behind it; when the store fails, so does
     * everything submitted by then.
     */
    submit: (items: readonly Item[], key?: Key, entered: () => void = () => {}): Promise<Result> =>
      new Promise((resolve, reject) => {
        const sender = senderOf(key);
        if (isClosed) return reject(new StoreError('store_stopped', 'This node is shutting down.'));
        if (sender.failure !== undefined) return reject(sender.failure);
        const size = Math.min(items.length, parts.itemsMax);
        const state = { ready: [], next: 0, unprepared: items.length, hasEntered: false };
        sender.jobs.push({ sender, items, size, ...state, entered, resolve, reject });
        if (!senders.includes(sender)) senders = [...senders, sender];
        advance();
      }),
    /** Rejects what a sender has not finished, and whatever it submits from now on. */
    leave: (key: Key): void => {
      drop(senderOf(key), 0, new StoreError('store_stopped', 'The sender has left.'));
      advance();
    },
    /** Finishes what was submitted, and takes no more. */
    close: (): Promise<void> => {
      isClosed = true;
      return new Promise((resolve) => {
        noteEmpty = resolve;
        advance();
      });
    },
  };
}

const isOutside = ({ hasEntered }: { readonly hasEntered: boolean }): boolean => !hasEntered;

type Progress = { readonly hasEntered: boolean; readonly next: number; readonly items: readonly unknown[] };
const hasPieces = ({ hasEntered, next, items }: Progress): boolean => hasEntered && next < items.length;

const behind = (cause: unknown): StoreError =>
  new StoreError('store_unavailable', 'An earlier batch was not stored, so this one was not tried. Retry shortly.', {
    cause,
  });
