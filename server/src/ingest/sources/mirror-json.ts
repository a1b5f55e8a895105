// The JSON of `POST /ingest/resume`, for the private listener and `sealpost follow --to`.
import { ApiError, type FeedId, malformedArgument, parseFeedId, type StreamStatus } from '@sealpost/protocol';
import { type MirrorPlace, type MirrorRequest, mirrorStreamsMax } from '../mirror.ts';

/** Longest request: every stream twice, in `feedIDs` and in `filled`. */
export const resumeBytesMax = 2_097_152;
const sourceLengthMax = 300;
const secondsMax = 2 ** 32 - 1;

type Fields = Readonly<Record<string, unknown>>;
type PlaceJson = Omit<MirrorPlace, 'feedId'> & { readonly feedID: string };

const isSecond = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) <= secondsMax;

const readSecond = (value: unknown, name: string): number => {
  if (isSecond(value)) return value;
  throw malformedArgument(name, value, `a whole number of seconds from 0 to ${secondsMax}`);
};

const readFields = (text: string): Fields => {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // Said below.
  }
  throw new ApiError('malformed_argument', 'The body is not a JSON object.', {});
};

const readSeconds = (value: unknown, name: string): ReadonlyMap<FeedId, number> => {
  if (value !== undefined && (typeof value !== 'object' || value === null || Array.isArray(value)))
    throw malformedArgument(name, value, 'an object of feed ID → second');
  return new Map(Object.entries(value ?? {}).map(([id, second]) => [parseFeedId(id, name), readSecond(second, name)]));
};

/** Reads a request; throws an `ApiError` that names the field. */
export function parseMirrorRequest(text: string): MirrorRequest {
  const { source, feedIDs, from, restart, filled } = readFields(text);
  if (typeof source !== 'string' || source === '' || source.length > sourceLengthMax)
    throw malformedArgument('source', source, `a text of 1 to ${sourceLengthMax} characters`);
  if (!Array.isArray(feedIDs) || feedIDs.length === 0 || feedIDs.length > mirrorStreamsMax)
    throw malformedArgument('feedIDs', typeof feedIDs, `a list of 1 to ${mirrorStreamsMax} feed IDs`);
  if (restart !== undefined && typeof restart !== 'boolean')
    throw malformedArgument('restart', restart, 'true or false');
  return {
    source,
    feedIds: [...new Set(feedIDs.map((raw) => parseFeedId(raw, 'feedIDs')))],
    from: from === undefined ? undefined : readSecond(from, 'from'),
    restart,
    filled: readSeconds(filled, 'filled'),
  };
}

/** A request as it is sent. */
export const renderMirrorRequest = ({ feedIds, filled, ...rest }: MirrorRequest): string =>
  JSON.stringify({ ...rest, feedIDs: feedIds, filled: filled && Object.fromEntries(filled) });

/** The answer as it is sent. */
export const renderMirrorPlaces = (places: readonly MirrorPlace[]): string =>
  JSON.stringify({ streams: places.map(({ feedId, ...place }): PlaceJson => ({ feedID: feedId, ...place })) });

/** Reads an answer to a request for these streams, in their order; undefined when it is none. */
export function parseMirrorPlaces(text: string, feedIds: readonly FeedId[]): readonly MirrorPlace[] | undefined {
  try {
    const { streams } = readFields(text);
    if (!Array.isArray(streams) || streams.length !== feedIds.length) return undefined;
    const places = streams.map((raw) => readPlace(Object(raw)));
    return places.every(({ feedId }, i) => feedId === feedIds[i]) ? places : undefined;
  } catch {
    return undefined;
  }
}

const readPlace = ({ feedID, status, from, start, until }: Fields): MirrorPlace => {
  const orNull = (value: unknown) => (value === null ? null : readSecond(value, 'place'));
  return {
    feedId: parseFeedId(feedID),
    status: status === null ? null : (String(status) as StreamStatus), // a later release may know more; only two of them mean anything here
    from: orNull(from),
    start: orNull(start),
    until: orNull(until),
  };
};
