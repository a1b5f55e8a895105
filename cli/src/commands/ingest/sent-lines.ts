// The lines of an upload: whether each one has its result, and which are empty ones of ours that keep a quiet connection open.

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
  /** An empty line to send now; undefined in the middle of a line, and while results are awaited: then silence means something. */
  readonly heartbeat: () => string | undefined;
  /** The result of a line arrived. Returns the line's number without the empty ones of ours. Results come in the order of the lines. */
  readonly settle: (line: number) => number;
  /** Is everything sent, and the last line with text settled? */
  readonly isSettled: () => boolean;
};

export function createSentLines(): SentLines {
  let current = 1; // the number of the line that the next byte belongs to
  let [last, settled, heartbeats] = [0, 0, 0];
  let [isLineStart, isEnded] = [true, false];
  return {
    add: (bytes) => {
      for (let from = 0; from < bytes.length; ) {
        const at = bytes.indexOf(newline, from);
        const end = at < 0 ? bytes.length : at;
        if (last < current && hasText(bytes, from, end)) last = current;
        if (at >= 0) current += 1;
        isLineStart = at >= 0;
        from = end + 1;
      }
    },
    end: () => {
      isEnded = true;
    },
    heartbeat: () => {
      if (isEnded || !isLineStart || settled < last) return undefined;
      current += 1;
      heartbeats += 1; // before every line that has no result yet
      return '\n';
    },
    settle: (line) => {
      settled = Math.max(settled, line);
      return line - heartbeats;
    },
    isSettled: () => isEnded && settled >= last,
  };
}
