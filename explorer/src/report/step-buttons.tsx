// Steps to the reports before and after one: buttons, the arrow keys, and what is said about a gap between them.
import type { ReportJson } from '@sealpost/protocol';
import { useEffect, useRef } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { reportHref } from '../state/router.ts';
import { explainError } from '../state/session.ts';
import { Time } from '../ui/components.tsx';
import { formatAge, formatCount } from '../ui/format.ts';
import { useShortcuts } from '../ui/use-shortcuts.ts';
import { type Direction, type EndReason, isMillisecondStream, reportSpanOf, type Side } from './neighbors.ts';
import type { Sides, Steps } from './steps.ts';

/** The address of a report; one of a millisecond stream shares its second with others. */
export function hrefOf(report: ReportJson): string {
  const href = reportHref(report.feedID, report.observationsTimestamp);
  return isMillisecondStream(report.feedID) ? `${href}?ms=${reportSpanOf(report).toMs}` : href;
}

const directions = ['previous', 'next'] as const;
const texts = { previous: '← Previous', next: 'Next →' } as const;
/** Least time between steps while a key is held down; browsers limit changes of the address. */
const repeatMs = 200;

/** The sides of a report, and a step to one of them that keeps the scroll position. */
export function useSteps(steps: Steps, report: ReportJson) {
  const { router } = useExplorer();
  const sides: Sides = steps.sides.value.get(report.fullReport) ?? {};
  useEffect(() => steps.look(report), [steps, report]);
  const step = (direction: Direction): boolean => {
    const side = sides[direction];
    if (side?.kind !== 'report') return false;
    const { scrollY } = window;
    router.go(hrefOf(side.report));
    window.scrollTo(0, scrollY);
    return true;
  };
  const stepped = useRef(0);
  const press =
    (direction: Direction) =>
    (event: KeyboardEvent): void => {
      if (event.shiftKey || (event.repeat && performance.now() - stepped.current < repeatMs)) return;
      if (step(direction)) stepped.current = performance.now();
    };
  useShortcuts('On a report', [
    { keys: ['ArrowLeft'], text: 'Step to the previous report', run: press('previous') },
    { keys: ['ArrowRight'], text: 'Step to the next report', run: press('next') },
  ]);
  return { sides, step };
}

type ButtonsProps = {
  readonly sides: Sides;
  readonly step: (direction: Direction) => boolean;
  readonly retry: () => void;
};

export const StepButtons = ({ sides, step, retry }: ButtonsProps) => (
  <>
    <p class="step-end small muted" role="status">
      {directions.flatMap((direction) => endText(sides[direction])).join(' · ')}
    </p>
    {directions.map((direction) => (
      <StepButton key={direction} direction={direction} side={sides[direction]} step={step} retry={retry} />
    ))}
  </>
);

const endTexts: Readonly<Record<EndReason, { readonly short: string; readonly long: string }>> = {
  first: { short: 'First report kept', long: 'This is the first report that the server keeps for this stream.' },
  retained: { short: 'Start of history', long: 'Earlier reports are before this server’s retained history.' },
  newest: { short: 'Newest report', long: 'This is the newest report. The next one can be opened when it arrives.' },
};

const endText = (side: Side | undefined): readonly string[] => (side?.kind === 'end' ? [endTexts[side.why].short] : []);

type ButtonProps = Omit<ButtonsProps, 'sides'> & { readonly direction: Direction; readonly side: Side | undefined };

/** Never disabled for the browser, so that it keeps the focus while the next report loads. */
const StepButton = ({ direction, side, step, retry }: ButtonProps) => {
  const { times } = useExplorer();
  const click = (event: MouseEvent): void => {
    const button = event.currentTarget;
    if (side?.kind === 'failed') retry();
    // The page moves the focus to its start; who presses the button wants to press it again.
    else if (step(direction) && button instanceof HTMLElement) requestAnimationFrame(() => button.focus());
  };
  return (
    <button
      type="button"
      aria-disabled={side?.kind === 'report' || side?.kind === 'failed' ? undefined : true}
      aria-keyshortcuts={direction === 'previous' ? 'ArrowLeft' : 'ArrowRight'}
      title={titleOf(direction, side, times.format)}
      onClick={click}
    >
      {side?.kind === 'failed' ? `${texts[direction]}: try again` : texts[direction]}
    </button>
  );
};

const titleOf = (direction: Direction, side: Side | undefined, format: (ms: number) => string): string => {
  const key = direction === 'previous' ? '←' : '→';
  switch (side?.kind) {
    case undefined:
      return 'Loading';
    case 'report':
      return `Valid to ${format(reportSpanOf(side.report).toMs)} (key ${key})`;
    case 'end':
      return endTexts[side.why].long;
    case 'failed':
      return explainError(side.error).problem;
  }
};

const lengthText = (ms: number): string => (ms < 1_000 ? `${formatCount(ms)} ms` : formatAge(ms));

/** Gaps next to the report, each with a link to its other side. */
export const SideNotes = ({ sides }: { readonly sides: Sides }) => (
  <div class="side-notes small" role="status">
    {directions.map((direction) => {
      const side = sides[direction];
      if (side?.kind !== 'report' || side.gapMs === 0) return null;
      const { fromMs, toMs } = reportSpanOf(side.report);
      return (
        <p key={direction}>
          <strong class="warn">Gap of {lengthText(side.gapMs)}</strong>{' '}
          {direction === 'previous' ? (
            <>
              before this report. <a href={hrefOf(side.report)}>The report before the gap</a> is valid to{' '}
              <Time ms={toMs} />.
            </>
          ) : (
            <>
              after this report. <a href={hrefOf(side.report)}>The report after the gap</a> is valid from{' '}
              <Time ms={fromMs} />.
            </>
          )}
        </p>
      );
    })}
  </div>
);
