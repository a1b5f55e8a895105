// The lines of an upload: whether each one has its result.

const [newline, space, tilde] = [0x0a, 0x20, 0x7e];

/** Whether there is text in bytes, from one index to before another. Other bytes do not count: the server may take them for space. */
const hasText = (bytes: Uint8Array, from: number, to: number): boolean => {
  for (let i = from; i < to; i++) {
    const byte = bytes[i] ?? 0;
    if (byte > space && byte <= tilde) return true;
  }
  return false;
};

export type SentLines = {
  /** Counts bytes that are sent. */
  readonly add: (bytes: Uint8Array) => void;
  /** All lines are sent. */
  readonly end: () => void;
  /** The result of a line arrived. Results come in the order of the lines. */
  readonly settle: (line: number) => void;
  /** Is everything sent, and the last line with text settled? */
  readonly isSettled: () => boolean;
};

export const createSentLines = (): SentLines => {
  let current = 1; // the number of the line that the next byte belongs to
  let [last, settled, isEnded] = [0, 0, false];
  return {
    add: (bytes) => {
      for (let from = 0; from < bytes.length; ) {
        const at = bytes.indexOf(newline, from);
        const end = at < 0 ? bytes.length : at;
        if (last < current && hasText(bytes, from, end)) last = current;
        if (at >= 0) current += 1;
        from = end + 1;
      }
    },
    end: () => {
      isEnded = true;
    },
    settle: (line) => {
      settled = Math.max(settled, line);
    },
    isSettled: () => isEnded && settled >= last,
  };
};
