// The calls of the client that TypeScript samples make, by route.
import { type RouteName, timeResolutionOf } from '@sealpost/protocol';

/** A text of TypeScript. */
export const quote = (text: string): string => `'${text.replace(/['\\]/g, '\\$&')}'`;
const list = (texts = ''): string => `[${texts.split(',').map(quote).join(', ')}]`;
const whole = (text = ''): string => (/^[0-9]+$/.test(text) ? text : quote(text));
const printPrice = 'console.log(decode(report).priceText);';
const printPrices =
  'for (const report of reports) console.log(report.observationsTimestamp, decode(report).priceText);';

const webSocketCall = ({ feedIDs }: Readonly<Record<string, string>>): readonly string[] => [
  `const reports = client.stream(${list(feedIDs)}, { transport: 'websocket' });`,
  `for await (const report of reports) ${printPrice}`,
];

const needsMilliseconds = ({ feedIDs = '' }: Readonly<Record<string, string>>): boolean =>
  feedIDs.split(',').some((feedId) => timeResolutionOf(feedId) === 'milliseconds');

/** The calls of the client, by route; the others are sent by `fetch` or, if they are WebSockets, by the package ws. */
export const clientCalls: Partial<
  Record<RouteName, (query: Readonly<Record<string, string>>) => readonly string[] | undefined>
> = {
  reportLatest: ({ feedID = '' }) => [`const { report } = await client.latest(${quote(feedID)});`, printPrice],
  reportAt: ({ feedID = '', timestamp }) => [
    `const { report } = await client.at(${quote(feedID)}, ${whole(timestamp)});`,
    printPrice,
  ],
  reportLatestMany: ({ feedIDs }) => [`const { reports } = await client.latestMany(${list(feedIDs)});`, printPrices],
  reportBulk: ({ feedIDs, timestamp }) => [
    `const { reports } = await client.bulk(${list(feedIDs)}, ${whole(timestamp)});`,
    printPrices,
  ],
  reportPage: ({ feedID = '', startTimestamp, limit }) => [
    `const { reports } = await client.page(${[quote(feedID), whole(startTimestamp), ...(limit === undefined ? [] : [whole(limit)])].join(', ')});`,
    printPrices,
  ],
  reportCoverage: ({ feedID = '', from, to }) => [
    `const { coverage } = await client.coverage(${quote(feedID)}, { from: ${whole(from)}, to: ${whole(to)} });`,
    'console.log(coverage);',
  ],
  reportCandles: ({ feedID = '', from, to, resolution }) => [
    `const range = { from: ${whole(from)}, to: ${whole(to)}, resolution: ${whole(resolution)} } as const;`,
    `const { candles } = await client.candles(${quote(feedID)}, range);`,
    'console.log(candles);',
  ],
  reportStream: ({ feedIDs }) => [`for await (const report of client.stream(${list(feedIDs)})) ${printPrice}`],
  socket: webSocketCall,
  // The client opens this path only for streams in milliseconds.
  socketMs: (query) => (needsMilliseconds(query) ? webSocketCall(query) : undefined),
  feeds: () => ['const { feeds } = await client.feeds();', 'console.log(feeds);'],
  time: () => ['const { serverTimeMs } = await client.time();', 'console.log(serverTimeMs);'],
  signers: () => ['const { signers } = await client.signers();', 'console.log(signers);'],
  status: () => ['const { status } = await client.status();', 'console.log(status);'],
};
