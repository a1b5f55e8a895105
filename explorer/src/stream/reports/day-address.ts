// The chosen day in the address: `day=2026-11-15`, `before=09:28:17` or `after=09:28:17`, and `order=oldest`. Days are UTC days, so that a
// shared link shows the same reports to everyone.
import { daySeconds, secondsMax } from '@sealpost/protocol';
import type { AddressProblem } from '../../ui/address-problem.ts';
import type { DayEdge } from './day-pages.ts';

export type DayOrder = 'newest' | 'oldest';

export type DayChoice = {
  /** First second of the day. */
  readonly day: number;
  readonly order: DayOrder;
  /** Undefined: the end of the day that the order begins with. */
  readonly edge: DayEdge | undefined;
};

/** The start of a day such as `2026-11-15`; undefined if there is no such day. */
export function parseDayStart(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined;
  const ms = Date.parse(`${text}T00:00:00Z`);
  if (Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== text) return undefined;
  return ms >= 0 && ms / 1_000 <= secondsMax ? ms / 1_000 : undefined;
}

const parseTimeOfDay = (text: string | null): number | undefined => {
  const [, hour, minute, second = '0'] = /^(\d{2}):(\d{2})(?::(\d{2}))?$/.exec(text ?? '') ?? [];
  if (minute === undefined || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined;
  return Number(hour) * 3_600 + Number(minute) * 60 + Number(second);
};

/** The day of an address; undefined if it has none, or one that does not exist. */
export function readDayChoice(query: URLSearchParams): DayChoice | undefined {
  const day = parseDayStart(query.get('day') ?? '');
  if (day === undefined) return undefined;
  const [before, after] = [parseTimeOfDay(query.get('before')), parseTimeOfDay(query.get('after'))];
  const edge: DayEdge | undefined =
    before !== undefined
      ? { side: 'before', second: day + before }
      : after !== undefined
        ? { side: 'after', second: day + after }
        : undefined;
  return { day, order: query.get('order') === 'oldest' ? 'oldest' : 'newest', edge };
}

const example = { day: '2026-11-15', time: '09:28:17' };

const timeProblem = (name: 'before' | 'after', query: URLSearchParams): string | undefined => {
  const text = query.get(name);
  if (text === null) return undefined;
  if (parseTimeOfDay(text) === undefined) return `must be a time of the day, such as ${example.time}.`;
  return name === 'after' && parseTimeOfDay(query.get('before')) !== undefined
    ? 'cannot be used with before.'
    : undefined;
};

const orderProblem = (order: string | null): string | undefined =>
  order === null || order === 'newest' || order === 'oldest' ? undefined : 'must be newest or oldest.';

/** The arguments of the address that the reports of a day ignore. */
export function dayProblems(query: URLSearchParams): readonly AddressProblem[] {
  const day = query.get('day');
  if (day !== null && parseDayStart(day) === undefined)
    return [{ name: 'day', text: `day must be a date, such as ${example.day}.` }];
  const texts = {
    before: timeProblem('before', query),
    after: timeProblem('after', query),
    order: orderProblem(query.get('order')),
  } as const;
  return (['before', 'after', 'order'] as const).flatMap((name) => {
    const text = day === null && query.has(name) ? `needs a day, such as day=${example.day}.` : texts[name];
    return text === undefined ? [] : [{ name, text: `${name} ${text}` }];
  });
}

/** The query with another day, or none; the other arguments stay. */
export function writeDayChoice(query: URLSearchParams, choice: DayChoice | undefined): URLSearchParams {
  const next = new URLSearchParams(query);
  for (const name of ['day', 'before', 'after', 'order']) next.delete(name);
  if (choice === undefined) return next;
  next.set('day', toDayText(choice.day));
  if (choice.edge !== undefined) next.set(choice.edge.side, toTimeText(choice.edge.second));
  if (choice.order === 'oldest') next.set('order', 'oldest');
  return next;
}

/** `2026-11-15`. */
export const toDayText = (second: number): string => new Date(second * 1_000).toISOString().slice(0, 10);

/** `09:28:17`. */
export const toTimeText = (second: number): string => new Date(second * 1_000).toISOString().slice(11, 19);

/** What to read for a choice. */
export const edgeOf = ({ day, order, edge }: DayChoice): DayEdge =>
  edge ?? (order === 'newest' ? { side: 'before', second: day + daySeconds - 1 } : { side: 'after', second: day });

/** Whether two choices have the same page; their order may differ. */
export function isSameRead(one: DayChoice, other: DayChoice): boolean {
  const [a, b] = [edgeOf(one), edgeOf(other)];
  return one.day === other.day && a.side === b.side && a.second === b.second;
}
