// Changes the head of an answer, however it is written: node and our own writer both set it as one text.
import type { ServerResponse } from 'node:http';

/** What node sends as the head once it is there; our writer puts the body behind it. */
type WithHead = ServerResponse & { _header: string | null };

export type HeadChanges = {
  /** How far the Date is off. */
  clockOffsetMs: number;
  /** IDs of faults that say so. */
  readonly marks: string[];
};

const headEnd = '\r\n\r\n';

/** Applies the changes that are there by the time the head is written. */
export const changeHead = (response: ServerResponse, changes: HeadChanges): void => {
  const target = response as WithHead; // a property of every response
  let head = target._header;
  Object.defineProperty(target, '_header', {
    configurable: true,
    enumerable: true,
    get: () => head,
    set: (text: string | null) => {
      head = typeof text === 'string' ? change(text, changes) : text;
    },
  });
};

const change = (text: string, { clockOffsetMs, marks }: HeadChanges): string => {
  const end = text.indexOf(headEnd);
  let head = text.slice(0, end);
  if (clockOffsetMs !== 0)
    head = head.replace(/\r\nDate: ([^\r\n]*)/, (_, date: string) => {
      const shifted = new Date(Date.parse(date) + clockOffsetMs);
      return `\r\nDate: ${shifted.toUTCString()}`;
    });
  if (marks.length > 0) head += `\r\nX-Sandbox-Fault: ${marks.join(', ')}`;
  return head + text.slice(end);
};
