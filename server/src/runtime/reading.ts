// How a caller wants to read: types that are shared by the engines and those who read much at once.

/** What an engine may know at once: a promise for it would cost a twentieth of a whole request. */
export type AtOnceOrLater<T> = T | Promise<T>;

/** Runs work that takes long, when its turn has come. It reads in slices, which run one at a time with pauses; `isOver` says when one's time is up. */
export type InSlices = <T>(
  work: (slice: <S>(read: (isOver: () => boolean) => Promise<S>) => Promise<S>) => Promise<T>,
) => Promise<T>;

/** Copies the bytes of a report out of memory that is used again. */
export type CopyBytes = (bytes: Uint8Array) => Uint8Array;
