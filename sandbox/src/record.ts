// What happened in a sandbox so far: the events of its scenario, and those that were set. Together they are at most as many as a scenario may have.
import { eventRow, type ScenarioEvent } from './scenario/event-table.ts';
import { eventsMax, ScenarioError } from './scenario/parse.ts';

export type RecordedEvent = { readonly event: ScenarioEvent; readonly second: number };

export type EventRecord = {
  /** The events of the scenario. */
  readonly own: readonly RecordedEvent[];
  /** What was set while it ran, newest last, the last ones. */
  readonly lastSet: () => readonly RecordedEvent[];
  /** Everything that a scenario needs for the same bytes. */
  readonly all: () => readonly RecordedEvent[];
  /** Throws a ScenarioError where there is no room for these events. */
  readonly requireRoom: (events: readonly ScenarioEvent[]) => void;
  /** Adds events that were set. */
  readonly add: (events: readonly RecordedEvent[]) => void;
};

/** Events that were set and are shown. */
export const shownMax = 20;

/** Whether an event changes how time runs, at once. It changes no byte, so that it needs no room. */
const isTimeControl = ({ type, at }: ScenarioEvent): boolean =>
  eventRow(type).runtime === true || (at === undefined && (type === 'pause' || type === 'speed'));

/** Without what else the caller knows of it, which would be kept. */
const bare = ({ event, second }: RecordedEvent): RecordedEvent => ({ event, second });

/** Starts with the events of the scenario. */
export function createEventRecord(events: readonly RecordedEvent[]): EventRecord {
  const own = events.map(bare);
  const set: RecordedEvent[] = [];
  let lastSet: readonly RecordedEvent[] = [];
  const roomBeside = (events: readonly ScenarioEvent[]): number =>
    eventsMax - own.length - set.length - events.filter((event) => !isTimeControl(event)).length;
  return {
    own,
    lastSet: () => lastSet,
    all: () => [...own, ...set],
    requireRoom: (events) => {
      if (roomBeside(events) < 0)
        throw new ScenarioError(
          '',
          `This sandbox has ${eventsMax} events, as many as a scenario may have. Start another one.`,
        );
    },
    add: (added) => {
      let room = roomBeside(added.map(({ event }) => event));
      for (const one of added.map(bare)) {
        if (eventRow(one.event.type).runtime === true) continue;
        lastSet = [...lastSet, one].slice(-shownMax);
        if (!isTimeControl(one.event)) set.push(one);
        else if (one.event.type === 'speed' && room > 0) {
          set.push(one);
          room -= 1;
        }
      }
    },
  };
}
