// The bytes of a report: one line per 32-byte word with part, offset and name, and an explanation of what is highlighted.
import { useComputed, useSignalEffect } from '@preact/signals';
import { wordBytes } from '@sealpost/protocol';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Copy } from '../components.tsx';
import { formatCount } from '../format.ts';
import { type ByteLink, linkEvents } from './byte-link.ts';
import { type BytesPart, digitsOf, partTitles, type Segment, wordsOf } from './bytes.ts';
import type { Difference } from './difference.ts';
import type { ReportReading } from './reading.ts';

type DumpProps = {
  readonly report: ReportReading;
  readonly link: ByteLink;
  /** What differs from the signed report, if that is known. */
  readonly difference: Difference | undefined;
};

/** The whole report as annotated hex. */
export function ReportDump({ report, link, difference }: DumpProps) {
  const { fullReport, segments } = report;
  const panel = useRef<HTMLDivElement>(null);
  const words = useMemo(() => wordsOf(segments), [segments]);
  const [current, setCurrent] = useState(0);
  useScrollToActive(panel, link, segments);
  const isAltered = difference !== undefined;
  useEffect(() => {
    const mark = panel.current?.querySelector('mark');
    if (isAltered && mark != null) scrollWithin(panel.current, mark);
  }, [isAltered, fullReport]);
  const move = (event: KeyboardEvent): void => {
    const target = targetOf(event.key, current, segments);
    if (event.key === 'Escape') link.clear();
    if (target === undefined) return;
    event.preventDefault();
    setCurrent(target);
    panel.current?.querySelector<HTMLElement>(`[data-segment="${target}"]`)?.focus();
  };
  return (
    <section class="card dump" aria-labelledby="bytes-title">
      <div class="row dump-head">
        <h2 id="bytes-title">Bytes</h2>
        <span class="muted small">{formatCount((fullReport.length - 2) / 2)} bytes, 32 per line</span>
        <Copy text={fullReport} label="Copy hex of the full report">
          Copy hex
        </Copy>
      </div>
      <Legend hasDifference={difference !== undefined} />
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms */}
      <div
        class="dump-words"
        role="group"
        aria-label="Bytes of the report. Use the arrow keys to move between values and Enter to keep one highlighted."
        ref={panel}
        onKeyDown={move}
      >
        {words.map((word) => (
          <Word key={word[0]?.offset} word={word} {...{ report, link, difference, current, setCurrent }} />
        ))}
      </div>
      <Explanation {...{ report, link, difference }} />
    </section>
  );
}

const parts: readonly BytesPart[] = ['context', 'layout', 'body', 'signatures'];
const letterOf = (part: BytesPart): string => partTitles[part].slice(0, 1);

const Legend = ({ hasDifference }: { readonly hasDifference: boolean }) => (
  <ul class="dump-legend small" aria-label="Parts of a report">
    {parts.map((part) => (
      <li key={part}>
        <span class={`part-mark ${part}`} aria-hidden="true">
          {letterOf(part)}
        </span>
        {partTitles[part]}
      </li>
    ))}
    {hasDifference && (
      <li>
        <mark class="altered-bytes" aria-hidden="true">
          ff
        </mark>
        Altered
      </li>
    )}
  </ul>
);

/** The segment that a key moves to: left and right by one value, up and down by one line. */
const targetOf = (key: string, current: number, segments: readonly Segment[]): number | undefined => {
  const from = segments[current];
  if (from === undefined) return undefined;
  const line = Math.floor(from.offset / wordBytes);
  const inLine = (wanted: number): number | undefined => {
    const found = segments.findIndex(({ offset }) => Math.floor(offset / wordBytes) === wanted);
    return found === -1 ? undefined : found;
  };
  switch (key) {
    case 'ArrowRight':
      return Math.min(current + 1, segments.length - 1);
    case 'ArrowLeft':
      return Math.max(current - 1, 0);
    case 'ArrowDown':
      return inLine(line + 1);
    case 'ArrowUp':
      return inLine(line - 1);
    case 'Home':
      return 0;
    case 'End':
      return segments.length - 1;
    default:
      return undefined;
  }
};

type WordProps = DumpProps & {
  readonly word: readonly Segment[];
  readonly current: number;
  readonly setCurrent: (index: number) => void;
};

const Word = ({ word, report, link, difference, current, setCurrent }: WordProps) => {
  const [first] = word;
  const isActive = useComputed(() => word.some((segment) => segment.link === link.active.value));
  if (first === undefined) return null;
  const { part, offset } = first;
  const names = word.filter(({ name }) => word.length === 1 || name !== 'padding').map(({ name }) => name);
  return (
    <div class={`word ${part} ${isActive.value ? 'active' : ''}`}>
      <span class={`part-mark ${part}`} title={partTitles[part]} aria-hidden="true">
        {letterOf(part)}
      </span>
      <span class="word-offset" aria-hidden="true">
        {offset}
      </span>
      <span class="word-digits">
        {word.map((segment) => {
          const index = report.segments.indexOf(segment);
          return (
            <SegmentButton key={segment.id} {...{ segment, index, report, link, difference, current, setCurrent }} />
          );
        })}
      </span>
      <span class="word-name" aria-hidden="true">
        {names.length > 2 ? `${names[0]} … ${names.at(-1)}` : names.join(', ')}
      </span>
    </div>
  );
};

type SegmentProps = Omit<WordProps, 'word'> & { readonly segment: Segment; readonly index: number };

const SegmentButton = ({ segment, index, report, link, difference, current, setCurrent }: SegmentProps) => {
  const isActive = useComputed(() => link.active.value === segment.link);
  const isChosen = useComputed(() => link.chosen.value === segment.link);
  const { part, name, type, offset, length } = segment;
  const digits = digitsOf(report.fullReport, segment);
  const zeros = length > 1 ? (/^(?:00)*/.exec(digits)?.[0].length ?? 0) : 0;
  const altered = difference?.bytes.get(segment.id);
  return (
    <button
      type="button"
      class={`segment ${part} ${isActive.value ? 'active' : ''}`}
      data-segment={index}
      data-link={segment.link}
      tabIndex={index === current ? 0 : -1}
      aria-pressed={isChosen.value}
      {...linkEvents(link, segment.link)}
      onClick={() => {
        setCurrent(index);
        link.choose(segment.link);
      }}
    >
      <span class="unseen">
        {partTitles[part]}: {name}, {type}, {offsetText({ offset, length })}
        {altered !== undefined && ', altered'}
      </span>
      <span aria-hidden="true">
        {altered === undefined ? (
          <>
            <span class="zeros">{digits.slice(0, zeros)}</span>
            {digits.slice(zeros)}
          </>
        ) : (
          <MarkedDigits digits={digits} altered={altered} />
        )}
      </span>
    </button>
  );
};

/** The digits of a segment, with altered bytes marked; neighbors share a mark. */
const MarkedDigits = ({ digits, altered }: { readonly digits: string; readonly altered: ReadonlySet<number> }) => {
  const runs: { readonly at: number; readonly isAltered: boolean; text: string }[] = [];
  for (let at = 0; at < digits.length / 2; at++) {
    const isAltered = altered.has(at);
    const text = digits.slice(2 * at, 2 * at + 2);
    const last = runs.at(-1);
    if (last?.isAltered === isAltered) last.text += text;
    else runs.push({ at, isAltered, text });
  }
  return runs.map(({ at, isAltered, text }) =>
    isAltered ? (
      <mark key={at} class="altered-bytes">
        {text}
      </mark>
    ) : (
      <span key={at}>{text}</span>
    ),
  );
};

/** Scrolls what is highlighted into view within the panel, without scrolling the page. */
const useScrollToActive = (
  panel: { readonly current: HTMLDivElement | null },
  link: ByteLink,
  segments: readonly Segment[],
): void =>
  useSignalEffect(() => {
    const active = link.active.value;
    const index = segments.findIndex((segment) => segment.link === active);
    const element = panel.current?.querySelector<HTMLElement>(`[data-segment="${index}"]`);
    if (element != null && !element.matches(':hover, :focus')) scrollWithin(panel.current, element);
  });

const scrollWithin = (panel: HTMLElement | null, element: Element): void => {
  if (panel === null) return;
  const { top, bottom } = panel.getBoundingClientRect();
  const box = element.getBoundingClientRect();
  if (box.top < top) panel.scrollTop -= top - box.top + scrollMargin;
  if (box.bottom > bottom) panel.scrollTop += box.bottom - bottom + scrollMargin;
};

const scrollMargin = 24;

/** Explains what is highlighted. */
const Explanation = ({ report, link, difference }: DumpProps) => {
  const active = link.active.value;
  const found = report.segments.filter((segment) => segment.link === active);
  const [first] = found;
  const different = difference?.values.find((value) => value.link === active);
  if (first === undefined)
    return (
      <p class="dump-note muted small">
        Point to a field, a signature or any bytes to highlight what belongs together.
      </p>
    );
  return (
    <div class="dump-note small" aria-live="polite">
      {found.map((segment) => (
        <p key={segment.id}>
          <strong class={`part-name ${segment.part}`}>
            {partTitles[segment.part]} · {segment.name}
          </strong>{' '}
          <span class="muted">
            <code>{segment.type}</code>, {offsetText(segment)}.
          </span>{' '}
          {segment.about}
        </p>
      ))}
      {different !== undefined && (
        <p>
          <strong class="bad">Altered.</strong> Signed: {different.signed}, here: {different.here}.
        </p>
      )}
    </div>
  );
};

const offsetText = ({ offset, length }: Pick<Segment, 'offset' | 'length'>): string =>
  length === 1 ? `byte ${offset}` : `bytes ${offset} to ${offset + length - 1}`;
