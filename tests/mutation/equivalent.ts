// Mutants that no test can find, because they behave as the original does. Each has its reason; one that no longer survives fails the row.

export type Equivalent = {
  readonly path: string;
  /** The source text that Stryker replaces, and what with. */
  readonly from: string;
  readonly to: string;
  readonly because: string;
};

const authenticate = 'server/src/access/authenticate.ts';
const packed = 'server/src/store/format/packed-report.ts';
const block = 'server/src/store/format/report-block.ts';
const signing = 'protocol/src/request-signing.ts';

export const equivalents: readonly Equivalent[] = [
  { path: signing, from: 'skewMs < 0', to: 'skewMs <= 0', because: 'A difference of 0 has passed before.' },
  {
    path: authenticate,
    from: 'caller === undefined',
    to: 'false',
    because: 'It has no secret ID then. The compiler asks.',
  },
  {
    path: authenticate,
    from: '[createHmacKey(randomBytes(32))]',
    to: '[]',
    because: 'Nobody knows the key that takes its place either. Only the time differs.',
  },
  {
    path: authenticate,
    from: '[]',
    to: '["Stryker was here"]',
    because: 'Nobody signs with the key that this would be the ID of.',
  },
  { path: authenticate, from: "'latin1'", to: '""', because: 'Hex digits are the same bytes in UTF-8.' },
  {
    path: 'protocol/src/parameters.ts',
    from: '/^[0-9]{4}-[0-9]{2}-[0-9]{2}$/',
    to: '/^[0-9]{4}-[0-9]{2}-[0-9]{2}/',
    because: 'With anything behind the day, what Date.parse gets is no time.',
  },
  {
    path: 'protocol/src/query.ts',
    from: 'insteadOf !== undefined',
    to: 'true',
    because: 'No argument has the name undefined. The compiler asks.',
  },
  ...['true', 'drained.length >= 0'].map((to) => ({
    path: 'server/src/access/limit-exchange.ts',
    from: 'drained.length > 0',
    to,
    because: 'An empty map takes the place of an empty map.',
  })),
  { path: packed, from: "'latin1'", to: '""', because: 'Hex digits are the same bytes in UTF-8.' },
  { path: packed, from: 'words === 0', to: 'false', because: 'A report of no words is a zero in either form.' },
  ...['start + wordBytes > b.length', 'start + wordBytes'].map((from) => ({
    path: packed,
    from,
    to: from === 'start + wordBytes' ? 'start - wordBytes' : 'false',
    because: 'Behind the end of the base is nothing that equals a byte; asking first is faster.',
  })),
  {
    path: packed,
    from: 'last > first',
    to: 'last >= first',
    because: 'It differs for a word of zeros only, of which nothing is packed whatever its end.',
  },
  {
    path: packed,
    from: 'view.bytes.length !== length',
    to: 'true',
    because: 'A new view of the same bytes, which takes longer.',
  },
  {
    path: packed,
    from: 'i < length',
    to: 'i <= length',
    because: 'The byte that is written too much is overwritten by what follows, or cut off.',
  },
  ...[
    ['length < wordBytes && headers[word] !== header', 'true'],
    ['length < wordBytes && headers[word] !== header', 'length < wordBytes || headers[word] !== header'],
    ['headers[word] !== header', 'true'],
    ['length < wordBytes', 'true'],
    ['length < wordBytes', 'length <= wordBytes'],
    ['base !== standing', 'true'],
    ['headers[word] !== fromBase', 'true'],
  ].map(([from = '', to = '']) => ({
    path: packed,
    from,
    to,
    because: 'What is there already is written once more, which takes longer.',
  })),
  ...['base.bytes.length > room.length', 'base.digits.length > roomDigits.length'].flatMap((from) =>
    ['true', from.replace('>', '>=')].map((to) => ({
      path: packed,
      from,
      to,
      because: 'All of a base that is no longer than the room is the same bytes.',
    })),
  ),
  {
    path: block,
    from: 'reports[0]?.fullReport',
    to: 'reports[0].fullReport',
    because: 'There is at least one report. The compiler asks.',
  },
  {
    path: block,
    from: 'bytes.length < headBytes',
    to: 'bytes.length <= headBytes',
    because: 'In six bytes there is no entry, whatever they count.',
  },
  {
    path: block,
    from: 'i === 0',
    to: 'false',
    because: 'The first report has no word of a base, so that it is read the same with one, which takes longer.',
  },
];
