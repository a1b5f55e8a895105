// The command `sealpost watch`: prices of streams as they come, as a table that is drawn again in place, or as NDJSON for a pipe.
import { type Client, decode, formatDecimal, SealpostError, type StreamState } from '@sealpost/client';
import { type FeedId, parseFeedId, type ReportJson } from '@sealpost/protocol';
import type { PlainCommand } from '../command.ts';
import { accessOptions, readAccess, wsUrlOption } from '../credentials.ts';
import { interruptedCode } from '../failure.ts';
import { type Column, formatSecond, renderTable } from '../formats.ts';
import { explainRemote, findRemoteFeeds, type RemoteFeed } from '../remote-client.ts';
import { printJson, type Session } from '../session.ts';

export const watchCommand: PlainCommand = {
  name: 'watch',
  summary: 'Watch live prices: a table on a terminal, otherwise one line of JSON for each report.',
  arguments: [
    {
      name: '[FEED...]',
      help: 'feed IDs, names, or pairs such as BTC/USD (default: every stream that the user may read)',
    },
  ],
  options: [
    { flag: '--json', help: 'print one line of JSON for each report, also on a terminal' },
    ...accessOptions,
    wsUrlOption,
  ],
  examples: [
    ['Two prices', 'sealpost watch BTC/USD-Streams-CexPrice ETH/USD-Streams-CexPrice --profile demo'],
    ['For a program', 'sealpost watch --profile demo | jq .price'],
  ],
  run: async ({ session, options }, raws: readonly string[]) => {
    const { url, wsUrl, openClient } = await readAccess(session, options);
    const client = openClient(url, session, { wsUrl });
    const signal = session.interruption();
    const feeds = await explainRemote(url, () => findRemoteFeeds(client, url, raws, signal));
    const isTable = session.isTerminal === true && options.json !== true;
    const board = isTable ? openBoard(session, feeds) : undefined;
    const names = new Map(feeds.map(({ feedId, name }) => [feedId, name]));
    if (board !== undefined) showNewest(client, [...names.keys()], board, signal);
    try {
      await explainRemote(url, async () => {
        const onState = ({ phase }: StreamState): void => board?.tellState(phase);
        const print = createPrinter(session, names);
        for await (const report of client.stream([...names.keys()], { signal, onState })) {
          if (board !== undefined) board.show(readPrice(report));
          else await print(readPrice(report));
        }
      });
    } finally {
      board?.close();
      if (signal.aborted) session.exitWith(interruptedCode(signal)); // also if the same key press ended the reader
    }
  },
};

/** Fills the table while the first live reports are awaited; a stream may take an hour to its next one. Live reports say what is wrong. */
const showNewest = (client: Client, feedIds: readonly FeedId[], board: Board, signal: AbortSignal): void => {
  const show = async (): Promise<void> => {
    const { reports } = await client.latestMany(feedIds, { signal });
    for (const report of reports) board.begin(readPrice(report));
  };
  show().catch(() => {});
};

/** Prints prices as lines of JSON. The first of several reports in a row that cannot be decoded is a warning for its stream. */
const createPrinter = (session: Session, names: ReadonlyMap<FeedId, string>) => {
  const unreadable = new Set<FeedId>();
  return async ({ failure, ...price }: ShownPrice): Promise<void> => {
    const { feedID, observationsTimestamp } = price;
    const name = names.get(feedID);
    if (failure === undefined) {
      unreadable.delete(feedID);
      return printJson(session, { ...price, name });
    }
    if (unreadable.has(feedID)) return;
    unreadable.add(feedID);
    const from = formatSecond(observationsTimestamp);
    session.stderr.write(
      `warning: Reports of ${name} from ${from} on are skipped: they cannot be decoded (${failure}).\n`,
    );
  };
};

/** What is shown of a report; prices are decimals of 18 places, bid and ask null where the schema has none. */
type ShownPrice = {
  readonly feedID: FeedId;
  readonly observationsTimestamp: number;
  readonly validFromTimestamp: number;
  readonly price: string;
  readonly bid: string | null;
  readonly ask: string | null;
  /** The code of the error, of a report that cannot be decoded; it is in the place of the price, too. */
  readonly failure?: string;
};

/** One report that cannot be decoded, such as one of a later schema, does not end the watch of all. */
const readPrice = (report: ReportJson): ShownPrice => {
  const { validFromTimestamp, observationsTimestamp } = report;
  const window = { feedID: parseFeedId(report.feedID), observationsTimestamp, validFromTimestamp };
  try {
    const { price, bid, ask } = decode(report);
    return {
      ...window,
      price: formatDecimal(price),
      bid: typeof bid === 'bigint' ? formatDecimal(bid) : null,
      ask: typeof ask === 'bigint' ? formatDecimal(ask) : null,
    };
  } catch (error) {
    if (!(error instanceof SealpostError)) throw error;
    return { ...window, price: `(${error.code})`, bid: null, ask: null, failure: error.code };
  }
};

/** A line of the table. `newest` is the price before the first live report: the time between the two does not count as a gap. */
export type Row = { readonly name: string; newest?: ShownPrice; price?: ShownPrice; reports: number; gaps: number };

const redrawMs = 250;
const columns: readonly Column[] = [
  { title: 'stream' },
  { title: 'price', align: 'right' },
  { title: 'bid', align: 'right' },
  { title: 'ask', align: 'right' },
  { title: 'age', align: 'right' },
  { title: 'reports', align: 'right' },
  { title: 'gaps', align: 'right' },
];

type Board = ReturnType<typeof openBoard>;

/** A table in the terminal's own screen, so that what was there before comes back. */
const openBoard = (session: Session, feeds: readonly RemoteFeed[]) => {
  const rows = new Map<FeedId, Row>(feeds.map(({ feedId, name }) => [feedId, { name, reports: 0, gaps: 0 }]));
  let state = 'connecting';
  const write = (text: string): void => void session.write(text).catch(() => {}); // a terminal that is closed sends a signal, too
  const draw = (): void => write(`\x1b[H${renderBoard(session, [...rows.values()], state)}\x1b[J`);
  write('\x1b[?1049h\x1b[?25l');
  draw();
  const timer = setInterval(draw, redrawMs);
  return {
    show: (price: ShownPrice): void => {
      const row = rows.get(price.feedID);
      if (row === undefined) return;
      if (row.price !== undefined && price.validFromTimestamp > row.price.observationsTimestamp + 1) row.gaps += 1;
      row.reports += 1;
      row.price = price;
    },
    begin: (price: ShownPrice): void => {
      const row = rows.get(price.feedID);
      if (row !== undefined) row.newest = price;
    },
    tellState: (told: string): void => {
      state = told;
    },
    close: (): void => {
      clearInterval(timer);
      write('\x1b[?25h\x1b[?1049l');
    },
  };
};

/** Columns that a narrow terminal goes without, the least important first. */
const dispensable = ['gaps', 'reports', 'ask', 'bid'];
const linesAround = 4; // header, empty line, state, and the line of the cursor

/** The table in as many columns and rows as fit: a line that wraps, or scrolls, could not be drawn again in place. */
export function renderBoard(session: Session, rows: readonly Row[], state: string): string {
  const nowSeconds = Math.floor(session.nowMs() / 1_000);
  const size = session.terminalSize?.();
  const fitting = size === undefined ? rows.length : Math.max(1, size.rows - linesAround);
  const cells = rows
    .slice(0, fitting)
    .map(({ name, newest, price = newest, reports, gaps }) => [
      name,
      price?.price ?? '–',
      price?.bid ?? '–',
      price?.ask ?? '–',
      price === undefined ? '–' : `${Math.max(0, nowSeconds - price.observationsTimestamp)} s`,
      String(reports),
      String(gaps),
    ]);
  const render = (left: number): string => {
    const gone = dispensable.slice(0, left);
    const shown = columns.flatMap(({ title }, i) => (gone.includes(title) ? [] : [i]));
    const table = renderTable(
      shown.map((i) => columns[i] as Column), // their own indexes
      cells.map((row) => shown.map((i) => row[i] ?? '')),
      session.paint,
    );
    const width = Math.max(
      ...table
        .split('\n')
        .slice(1)
        .map((line) => line.length),
    ); // the header may have colors
    return size !== undefined && width > size.columns && left < dispensable.length ? render(left + 1) : table;
  };
  const shown = state === 'live' ? session.paint.green(state) : session.paint.yellow(state);
  const more = rows.length > fitting ? `${rows.length - fitting} more below.  ` : '';
  // A line that grows shorter leaves its end behind, unless it is wiped.
  return `${`${render(0)}\n${shown}  ${more}Ctrl-C to quit.\n`.replaceAll('\n', '\x1b[K\n')}`;
}
