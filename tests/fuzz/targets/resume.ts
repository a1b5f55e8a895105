// What mirrors and the private listener tell each other as JSON.
import assert from 'node:assert/strict';
import { ApiError, type FeedId, parseFeedId } from '@sealpost/protocol';
import {
  parseMirrorPlaces,
  parseMirrorRequest,
  renderMirrorPlaces,
  renderMirrorRequest,
} from '../../../server/src/ingest/sources/mirror-json.ts';
import { outcomeOf, requireSame, shapeOf, type Target } from '../target.ts';

const feedIds = ['a', 'b'].map((digit) => parseFeedId(`0x0003${digit.repeat(60)}`)) as readonly FeedId[];
const [first, second] = feedIds as [FeedId, FeedId];

const seeds = [
  {
    source: 'https://a.test',
    feedIDs: feedIds,
    from: 1_763_200_000,
    restart: true,
    filled: { [first]: 1_763_200_001 },
  },
  { source: 'x', feedIDs: [second], filled: { [second]: 1_763_200_002 } },
  {
    streams: [
      { feedID: first, status: 'live', from: null, start: 1, until: 2 },
      { feedID: second, status: null, from: 1, start: null, until: null },
    ],
  },
];

export const openResume = async (): Promise<Target> => ({
  seeds: seeds.map((one) => Buffer.from(JSON.stringify(one))),
  words: [
    'source',
    'feedIDs',
    'from',
    'restart',
    'filled',
    'streams',
    'feedID',
    'status',
    'start',
    'until',
    first,
    second,
    first.toUpperCase(),
  ],
  json: 'value',
  run: (input) => {
    const text = input.toString();
    const places = parseMirrorPlaces(text, feedIds);
    if (places !== undefined)
      requireSame(parseMirrorPlaces(renderMirrorPlaces(places), feedIds), places, 'places are read as others');
    const read = outcomeOf(() => parseMirrorRequest(text), [ApiError]);
    if ('error' in read) {
      assert.ok(read.error.message.length < 2_000, 'an error repeats the whole input');
      return `${shapeOf(read.error.message)} ${places === undefined ? '' : 'places'}`;
    }
    requireSame(parseMirrorRequest(renderMirrorRequest(read.value)), read.value, 'a request is read as another one');
    return `accepted ${read.value.feedIds.length} ${read.value.filled?.size} ${read.value.restart} ${read.value.from === undefined}`;
  },
});
