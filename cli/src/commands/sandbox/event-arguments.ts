// An event on the command line: `crash 30 streams=ETH/USD over=1m`, `fault status=503,count=2`, or JSON.
import { type EventType, eventRow, eventTypes } from '@sealpost/sandbox/scenario/event-table';
import { usageError } from '../../failure.ts';

/** Reads the words of `sandbox set` as the JSON of an event, or of several. The sandbox checks the values. */
export function readEventArguments(first: string, others: readonly string[]): unknown {
  if (/^\s*[[{]/.test(first)) return readJson(first, others);
  if (!isType(first))
    throw usageError(`"${first}" is not an event, expected one of ${eventTypes.join(', ')}, or a JSON object.`);
  const { fields, main } = eventRow(first);
  const event: Record<string, unknown> = { type: first };
  // The line of a fault has commas and equal signs of its own.
  const isFault = first === 'fault';
  for (const word of others) {
    const [name, text] = isFault && !word.startsWith('at=') ? [main, word] : cut(word, main);
    if (name === undefined || (name !== 'at' && !Object.hasOwn(fields, name))) throw unknownField(first, word);
    if (event[name] !== undefined) throw usageError(`${name} is given twice.`);
    event[name] = name === 'streams' ? text.split(',') : (fields[name]?.read(text) ?? text);
  }
  return event;
}

const isType = (type: string): type is EventType => (eventTypes as readonly string[]).includes(type); // only widens it

const cut = (word: string, main: string | undefined): readonly [string | undefined, string] => {
  const at = word.indexOf('=');
  return at === -1 ? [main, word] : [word.slice(0, at), word.slice(at + 1)];
};

const unknownField = (type: EventType, word: string) => {
  const { fields, main } = eventRow(type);
  const names = ['at', ...Object.keys(fields)].map((name) => `${name}=…`).join(', ');
  const value = main === undefined ? '' : ` A word without = is its ${main}.`;
  return usageError(`"${word}" is not a field of ${type}. Fields: ${names}.${value}`);
};

const readJson = (text: string, others: readonly string[]): unknown => {
  if (others.length > 0) throw usageError(`"${others[0]}" follows a JSON event, which has all its fields itself.`);
  try {
    return JSON.parse(text);
  } catch {
    throw usageError('The event is not JSON. Quote it: sealpost sandbox set \'{"type":"pause"}\'.');
  }
};
