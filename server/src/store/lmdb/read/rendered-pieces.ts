// Reports of runs, rendered side by side into slabs: a page is cut from them, in one piece with its opening and closing where all of it was rendered for
// it. Pieces that several pages share are rendered once.
import type { FeedId } from '@sealpost/protocol';
import type { RecordBytes } from '../../format/record-bytes.ts';
import { createReportRenderer, renderedLengthMax, type WriteReport } from '../../format/rendered-report.ts';
import { type Block, type BlockIndex, openBlock } from '../../format/report-block.ts';
import type { RenderedPage } from '../../store.ts';
import { createSlabs, type Lease, type Region, type Slab, type Slabs } from './slabs.ts';

/** Rendered runs are kept in so much memory, some 7,000 reports; a slab has room for several pages. */
const [slabBytes, slabsMax] = [1024 * 1024, 12];

const comma = ','.charCodeAt(0);
const opening = Buffer.from('{"reports":[');
const closing = Buffer.from(']}');

/** Reports of a run that were first asked for together: side by side, a comma between them. */
type Piece = Region & {
  readonly from: number;
  readonly to: number;
  /** Where each of them begins in the slab, and where another one would. */
  readonly starts: readonly number[];
};

type KeptPiece = Piece & { readonly slab: Slab };

/** A piece that a page is cut from. It knows its slab for as long as that is leased, also where the ring has come around to it. */
type Covering = Pick<Piece, 'from' | 'to' | 'starts'> & { readonly slab: Slab; readonly piece: Piece };

/** A run, rendered as far as it was asked for; its record is read again for the rest. */
export type RenderedRun = {
  readonly checksum: number;
  readonly index: BlockIndex;
  pieces: readonly Piece[];
};

/** Bytes of a slab that are sent as they are: reports with commas between them. */
type Span = { readonly slab: Slab; readonly start: number; readonly end: number };

/** Reports of a run from one index up to another. */
export type Segment = {
  readonly run: RenderedRun;
  readonly from: number;
  readonly to: number;
  /** What it is cut from. */
  readonly pieces: readonly Covering[];
};

/** A page and where it lies: nowhere, where it was assembled report by report. */
export type MadePage = Omit<RenderedPage, 'release'> & {
  readonly spans: readonly Span[];
  readonly regions: readonly Region[];
  /** No append can change it: others follow, and no report fits before, between or after those that are in it. */
  readonly isSettled: boolean;
};

/** What a page is asked for by. */
export type Wanted = {
  readonly feedId: FeedId;
  readonly stream: number;
  readonly fromSeconds: number;
  readonly limit: number;
};

/** Is what was rendered there still there? */
export const isThere = <T extends Region>(region: T): region is T & { readonly slab: Slab } =>
  region.slab !== undefined;

export const bytesOf = ({ slab, start, end }: Span): Buffer => slab.bytes.subarray(start, end);

export type Pieces = ReturnType<typeof createPieces>;

/** `onLeft` is called when memory is left to slow answers: whoever keeps pages forgets those in it, so that they do not hold it longer. */
export const createPieces = (onLeft: () => void) => {
  const slabs = createSlabs(slabBytes, slabsMax, onLeft);
  const render = createPieceRenderer(slabs);
  return {
    lease: slabs.lease,
    /** Whether all of a page is in memory that is kept anyway. */
    mayKeep: ({ json, spans }: MadePage): boolean =>
      spans.length === 0 ? json.length === 0 : spans.every(({ slab }) => slabs.isInRing(slab)),
    /** A page in the making; the lease holds what it is made of. */
    beginPage: (wanted: Wanted, lease: Lease) => createPageMaker(slabs, render, wanted, lease),
    /** The body of a page, put together; undefined where it takes more than a slab. */
    join: (spans: readonly Span[]): (Region & { readonly span: Span; readonly body: Buffer }) | undefined => {
      const bytes = spans.reduce((sum, { start, end }) => sum + end - start + 1, opening.length + closing.length);
      if (bytes > slabBytes) return undefined;
      const { slab, start } = slabs.take(bytes);
      let at = start + opening.copy(slab.bytes, start);
      for (const [i, span] of spans.entries()) {
        if (i > 0) slab.bytes[at++] = comma;
        at += span.slab.bytes.copy(slab.bytes, at, span.start, span.end);
      }
      const span = { slab, start: start + opening.length, end: at };
      at += closing.copy(slab.bytes, at);
      const region = { slab, span, body: slab.bytes.subarray(start, at) };
      return slabs.keep(slab, at, region) ? region : undefined;
    },
  };
};

const createPieceRenderer = (slabs: Slabs) => {
  const writers = new Map<FeedId, WriteReport>();
  const writerOf = (feedId: FeedId): WriteReport => {
    const writer = writers.get(feedId) ?? createReportRenderer(feedId);
    writers.set(feedId, writer);
    return writer;
  };
  /** Renders some reports of a block. `isFirst`: a page begins with them, whose opening is put before. */
  return (feedId: FeedId, block: Block, from: number, to: number, isFirst: boolean) => {
    let bytes = opening.length + closing.length;
    for (let i = from; i < to; i++) bytes += renderedLengthMax(feedId, block.fullReportBytes(i)) + 1;
    const { slab, start } = slabs.take(bytes);
    const text = slab.bytes;
    if (isFirst) text.set(opening, start);
    let at = isFirst ? start + opening.length : start;
    const starts = [at];
    const write = writerOf(feedId);
    for (let i = from; i < to; i++) {
      const window = block.window(i);
      at = write(text, at, window, block.readShared(i, window).digits);
      text[at++] = comma;
      starts.push(at);
    }
    const piece: KeptPiece = { slab, from, to, starts };
    return { piece, isKept: slabs.keep(slab, at, piece) };
  };
};

const createPageMaker = (
  slabs: Slabs,
  render: ReturnType<typeof createPieceRenderer>,
  { feedId, stream }: Wanted,
  lease: Lease,
) => {
  let isBegun = false;
  /** The piece that the page begins with, and the one rendered last; undefined where nothing was rendered for it. */
  let first: KeptPiece | undefined;
  let last: KeptPiece | undefined;
  const renderNext = (run: RenderedRun, block: Block, from: number, to: number): KeptPiece => {
    const { piece, isKept } = render(feedId, block, from, to, !isBegun);
    if (!isBegun) first = piece;
    last = piece;
    if (isKept) run.pieces = [...run.pieces.filter(isThere), piece];
    return piece;
  };
  /** The closing takes the place of the last comma. */
  const close = (span: Span): Buffer => {
    const end = span.end + closing.copy(span.slab.bytes, span.end);
    slabs.keep(span.slab, end, { slab: span.slab });
    return span.slab.bytes.subarray(span.start - opening.length, end);
  };
  return {
    /** Pieces that hold the reports of a run from one index up to another; what is missing is rendered from its record. */
    cover: (run: RenderedRun, record: RecordBytes, from: number, to: number): readonly Covering[] => {
      const covering: Covering[] = [];
      let block: Block | undefined;
      for (let at = from; at < to; at = covering.at(-1)?.to ?? to) {
        const known = run.pieces.filter(isThere);
        const end = known.reduce((next, piece) => (piece.from > at ? Math.min(next, piece.from) : next), to);
        const here = known.find((piece) => piece.from <= at && at < piece.to);
        block ??= here === undefined ? openBlock(stream, record) : undefined;
        const piece = here ?? renderNext(run, block as Block, at, end); // opened above
        isBegun = true;
        lease.add(piece.slab); // before the next one is rendered, which may come around to its slab
        covering.push({ slab: piece.slab, from: piece.from, to: piece.to, starts: piece.starts, piece });
      }
      return covering;
    },
    /** The page of these segments, with its body where all of it was rendered now and side by side. */
    cut: (segments: readonly Segment[]): Pick<MadePage, 'json' | 'spans' | 'regions' | 'body'> => {
      const spans = spansOf(segments);
      const page = {
        json: spans.map(bytesOf),
        spans,
        regions: segments.flatMap(({ pieces }) => pieces.map(({ piece }) => piece)),
      };
      const [only] = spans;
      if (only === undefined || spans.length > 1 || first === undefined || last === undefined) return page;
      const isOpened = only.slab === first.slab && only.start === first.starts[0];
      const isLast = only.slab === last.slab && only.end + 1 === last.starts.at(-1);
      return isOpened && isLast ? { ...page, body: close(only) } : page;
    },
  };
};

/** What segments are cut from, those that lie side by side as one. */
const spansOf = (segments: readonly Segment[]): readonly Span[] => {
  const spans: Span[] = [];
  for (const { from, to, pieces } of segments)
    for (const piece of pieces) {
      const [begin, end] = [Math.max(from, piece.from), Math.min(to, piece.to)];
      if (begin >= end) continue; // beyond the whole seconds
      const start = piece.starts[begin - piece.from] as number; // one each, and one more
      const span = { slab: piece.slab, start, end: (piece.starts[end - piece.from] as number) - 1 }; // one each, and one more
      const before = spans.at(-1);
      if (before?.slab === span.slab && before.end + 1 === start)
        spans[spans.length - 1] = { ...before, end: span.end };
      else spans.push(span);
    }
  return spans;
};
