// Values in the order in which they came, each removed at any time. Unlike a Set, a list leaves nothing behind: each table that a Set or Map outgrows, or
// clears, points to the next one, and once such a table is old, all later ones survive with all that was in them until the whole heap is marked (D232).

export type Link<T> = { readonly value: T; before: Link<T> | undefined; after: Link<T> | undefined; isIn: boolean };

export type LinkedList<T> = {
  readonly add: (value: T) => Link<T>;
  /** False if it was removed before. */
  readonly remove: (link: Link<T>) => boolean;
  /** The oldest one. */
  readonly first: () => T | undefined;
};

export const createLinkedList = <T>(): LinkedList<T> => {
  let first: Link<T> | undefined;
  let last: Link<T> | undefined;
  return {
    add: (value) => {
      const link: Link<T> = { value, before: last, after: undefined, isIn: true };
      if (last === undefined) first = link;
      else last.after = link;
      last = link;
      return link;
    },
    remove: (link) => {
      if (!link.isIn) return false;
      const { before, after } = link;
      if (before === undefined) first = after;
      else before.after = after;
      if (after === undefined) last = before;
      else after.before = before;
      [link.before, link.after, link.isIn] = [undefined, undefined, false]; // else an old one would keep the younger ones alive
      return true;
    },
    first: () => first?.value,
  };
};
