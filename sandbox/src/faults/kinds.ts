// The table of fault kinds: what each does, where it acts, and its fields. Parsers, the JSON Schema, the text form and the documentation are derived
// from it or compared with it.
import { ApiError, parseFeedId, parseUserId, type RouteName, routes } from '@sealpost/protocol';
import {
  duration,
  type FaultField,
  type FieldValues,
  flag,
  integer,
  longText,
  moment,
  names,
  number,
  numberOf,
  required,
  text,
} from './fields.ts';

/**
 * Where a fault acts, which is also what it counts: a `request` before it is answered (opening a live connection is one), the `answer` to one,
 * a live `connection`, a live `message`, or each `report` in an answer or a message.
 */
export type FaultPlace = 'request' | 'answer' | 'connection' | 'message' | 'report';

type KindRow = {
  readonly acts: FaultPlace;
  readonly about: string;
  /** The field that text gives after the kind: `status=503`. */
  readonly main?: string;
  readonly fields: Readonly<Record<string, FaultField>>;
  /** Fields of every fault that this kind cannot have. */
  readonly without?: readonly CommonFieldName[];
};

/** No fault keeps anything waiting for longer. */
const delayMax = '60s';

const routeNames = Object.keys(routes) as readonly RouteName[]; // the table's own keys

const parseAccount = (userId: string): string | undefined => {
  try {
    return parseUserId(userId).toLowerCase();
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
};

const streamNameMax = 200;
const parseStreamName = (name: string): string | undefined => {
  const trimmed = name.trim();
  if (trimmed === '' || trimmed.length > streamNameMax) return undefined;
  if (!/^0x/i.test(trimmed)) return trimmed;
  try {
    return parseFeedId(trimmed);
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
};

/** The fields of every fault. */
export const commonFields = {
  id: text(
    'Name of the fault, to remove it by; f1, f2 and so on where absent.',
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    'up to 64 letters, digits, dots, dashes and underscores',
  ),
  probability: number('How often it acts: 0.1 is one time in ten. Always, where absent.', 0, 1),
  count: integer('How many times it acts; then it is exhausted.', 1, 1_000_000),
  skip: integer('How many times it lets pass before it acts.', 0, 1_000_000),
  from: moment('When it starts, in sandbox time; at once where absent.'),
  to: moment('When it ends, in sandbox time; when it is removed where absent.'),
  for: duration('How long it lasts, in sandbox time, instead of `to`.', '1ms', '31d'),
  route: names(
    'Only these routes, by their name in the API.',
    (name) => routeNames.find((route) => route === name),
    `one of ${routeNames.join(', ')}`,
    { type: 'string', enum: routeNames },
  ),
  account: names(
    'Only requests of these accounts, by user ID.',
    parseAccount,
    'a user ID such as 00000000-0000-4000-8000-000000000000',
  ),
  stream: names(
    'Only these streams, by name, pair or feed ID.',
    parseStreamName,
    'a stream name, a pair such as ETH/USD, or a feed ID',
  ),
  mark: flag(
    'Whether an answer that it changes says so in the header X-Sandbox-Fault. Real services have no such header, so none is sent by default.',
  ),
} as const satisfies Readonly<Record<string, FaultField>>;

export type CommonFieldName = keyof typeof commonFields;

const none = {} as const;
const counted = ['count', 'skip'] as const;

/** Every kind of fault. */
const faultKinds = {
  status: {
    acts: 'request',
    about:
      'Answers with a status: an error of the API for 429, 500 and 503 without a body, otherwise a body of your own, or a page as proxies have it.',
    main: 'status',
    fields: {
      status: required(
        numberOf('The status.', [
          [200, 203],
          [205, 303],
          [305, 599],
        ]),
      ),
      body: longText('The body.', 2_000),
      contentType: text(
        'Its type; text/html where absent.',
        /^[\x21-\x2b\x2d-\x7e][\x20-\x2b\x2d-\x7e]{0,98}$/,
        'a media type such as text/plain',
      ),
      retryAfter: integer('Seconds in the header Retry-After; no header where absent.', 0, 86_400),
    },
  },
  latency: {
    acts: 'request',
    about: 'Delays the answer. Live connections open late.',
    main: 'delay',
    fields: {
      delay: required(duration('How late the answer is, in real time.', '0ms', delayMax)),
      jitter: duration('Up to this much is added to or taken from each delay, evenly spread.', '0ms', delayMax),
    },
  },
  reset: { acts: 'request', about: 'Resets the connection instead of answering.', fields: none },
  truncate: {
    acts: 'answer',
    about: 'Closes the connection in the middle of the body.',
    main: 'bytes',
    fields: { bytes: integer('Bytes of the body that are sent; half of it where absent.', 0, 100_000_000) },
  },
  slow: {
    acts: 'answer',
    about: 'Sends the body slowly.',
    main: 'bytesPerSecond',
    fields: { bytesPerSecond: required(integer('Bytes of the body per second of real time.', 1, 10_000_000)) },
  },
  missing: {
    acts: 'answer',
    about: 'Answers as if the streams had no data: 206 without them for several streams, 404 for one, an empty page.',
    fields: none,
  },
  revoked: {
    acts: 'request',
    about: 'Rejects signed requests with 401 and closes live connections with 1008, as after a revoked secret.',
    fields: none,
  },
  clock: {
    acts: 'request',
    about: 'Sets the server clock off: /time, Date headers, and what signed timestamps are compared with.',
    main: 'offset',
    fields: { offset: required(duration('How far the clock is ahead; behind where negative.', '-7d', '7d')) },
  },
  'origin-down': {
    acts: 'request',
    about: 'Resets requests and live connections that name an origin in X-Cll-Origin.',
    main: 'origin',
    fields: { origin: required(text('The origin.', /^[\x21-\x7e]{1,200}$/, 'the name of an origin')) },
  },
  close: {
    acts: 'connection',
    about:
      'Closes live connections: when it starts, when one opens, or before a message. Event streams end without a code.',
    main: 'code',
    fields: {
      code: numberOf('Close code; 1006 cuts the connection without a close frame. 1011 where absent.', [
        [1000, 1003],
        [1006, 1014],
        [3000, 4999],
      ]),
    },
  },
  silent: {
    acts: 'connection',
    about: 'Sends nothing to live connections: no messages, no pings, no pongs, no comments. They stay open.',
    fields: none,
  },
  delay: {
    acts: 'message',
    about: 'Delays live messages; those of a stream stay in order.',
    main: 'delay',
    fields: {
      delay: required(duration('How late a message is, in real time.', '0ms', delayMax)),
      jitter: duration('Up to this much is added to or taken from each delay, evenly spread.', '0ms', delayMax),
    },
  },
  reorder: {
    acts: 'message',
    about: 'Sends a live message after the next one of its stream, or 5 s late.',
    fields: none,
  },
  duplicate: {
    acts: 'message',
    about: 'Sends live messages more than once.',
    main: 'times',
    fields: { times: integer('How many times a message is sent; twice where absent.', 2, 10) },
  },
  'wrong-signer': {
    acts: 'report',
    about: 'One signature of a report is by a key outside of the signer set.',
    fields: none,
  },
  'few-signatures': {
    acts: 'report',
    about: 'A report has f signatures, one fewer than a quorum.',
    fields: none,
  },
  'altered-body': {
    acts: 'report',
    about: 'The price of a report is changed by 1 % without signing it again.',
    fields: none,
  },
  'wrong-window': {
    acts: 'report',
    about: 'A report is properly signed, for another time than the one asked for.',
    main: 'shift',
    fields: { shift: duration('How far the window is moved; -60s where absent.', '-31d', '31d') },
  },
  'two-reports': {
    acts: 'report',
    about:
      'There are two properly signed reports with different prices for one window: answers alternate, live connections get both.',
    fields: none,
  },
  stop: {
    acts: 'report',
    about:
      'A stream stops: reports observed since the fault starts, until it ends, are left out of every answer and message.',
    fields: none,
    without: counted,
  },
  gap: {
    acts: 'report',
    about:
      'A gap: reports observed between `from` and `to` are left out of every answer and message, also after that time.',
    fields: none,
    without: counted,
  },
} as const satisfies Readonly<Record<string, KindRow>>;

export type FaultKind = keyof typeof faultKinds;

export const faultKindNames = Object.keys(faultKinds) as readonly FaultKind[]; // the table's own keys

/** A row without its exact type. */
export const kindRow = (kind: FaultKind): KindRow => faultKinds[kind];

/** The fields that every fault may have. */
export type CommonValues = FieldValues<typeof commonFields>;

/** A fault of one kind, in its JSON form. */
export type FaultOf<K extends FaultKind> = { readonly kind: K } & FieldValues<(typeof faultKinds)[K]['fields']> &
  CommonValues;

/** A fault, in its JSON form. */
export type Fault = { readonly [K in FaultKind]: FaultOf<K> }[FaultKind];
