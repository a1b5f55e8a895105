// What a sandbox puts between live delivery and a connection, to change what is sent. Without a sandbox there is none.
import type { Ending, Opened } from './connections.ts';
import type { LiveForm } from './message.ts';

/** Whose connection it is, and what goes through it. */
export type TappedConnection = Opened & {
  readonly form: LiveForm;
  /** The origin that the client named. */
  readonly origin: string | undefined;
};

/** The connection itself, past the tap. */
export type TapTarget = {
  /** Whole messages or comments, as the tap got them. */
  readonly send: (message: Buffer | string) => void;
  readonly end: (why: Ending) => void;
  /** Closes with a code where the transport has one; 1006 is a cut. */
  readonly close: (code: number) => void;
};

export type Tap = {
  /** Takes messages and comments for the client. */
  readonly write: (message: Buffer | string) => void;
  /** While it is, the connection sends neither pings nor pongs. */
  readonly isSilent: () => boolean;
  /** About once a second. */
  readonly tend: () => void;
  /** The connection is over. */
  readonly closed: () => void;
};

export type OpenTap = (connection: TappedConnection, target: TapTarget) => Tap;
