// Mutates JSON by its structure: values replaced, removed, copied, nested. Bytes alone seldom leave JSON that can be parsed.
import { pick, type Random } from '../support/random.ts';

const values: readonly unknown[] = [
  ...[null, true, false, 0, 1, -1, 0.5, 2 ** 31, 2 ** 32, 2 ** 53, -(2 ** 53), 1e21, 1e308, -1e308, 8.64e15 + 1],
  ...[
    '',
    ' ',
    '0',
    '1',
    '-1',
    '0x',
    'null',
    '__proto__',
    'constructor',
    '\u0000',
    '\ud800',
    '\u202e',
    'é',
    'x'.repeat(300),
  ],
  ...[[], {}, [[]], [null], { length: 1 }, { toString: 1 }],
];

const depths = [10, 1_000, 10_000];

/** Lists in lists: JSON.parse accepts them, and JSON.stringify runs out of stack. So they are put into the text, in place of a mark. */
const nestedMark = '\u0000nested';
const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;

type Place = { readonly holder: Record<string, unknown> | unknown[]; readonly key: string };

/** Every place of a document that holds a value; `root` is the document itself. */
const placesOf = (root: Record<string, unknown>): readonly Place[] => {
  const places: Place[] = [];
  const queue: (Record<string, unknown> | unknown[])[] = [root];
  for (const holder of queue)
    for (const key of Object.keys(holder)) {
      if (places.length > 2_000) return places;
      places.push({ holder, key });
      const value = valueAt({ holder, key });
      if (typeof value === 'object' && value !== null) queue.push(value as Record<string, unknown>);
    }
  return places;
};

const valueAt = ({ holder, key }: Place): unknown => (holder as Record<string, unknown>)[key];

const assign = ({ holder, key }: Place, value: unknown): void => {
  // Not by assignment: `__proto__` must become a member.
  Object.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true });
};

const changes: readonly ((random: Random, place: Place, places: readonly Place[], words: readonly string[]) => void)[] =
  [
    (random, place) => assign(place, pick(random, values)),
    (random, place) => assign(place, pick(random, values)),
    (random, place, places) => assign(place, structuredClone(valueAt(pick(random, places)))),
    (random, place, places) => assign(place, structuredClone(valueAt(pick(random, places)))),
    (random, place, _, words) => assign(place, words.length === 0 ? '' : pick(random, words)),
    (random, place) => assign(place, random(2) === 0 ? nestedMark : [valueAt(place)]),
    (_, { holder, key }) =>
      void (Array.isArray(holder) ? holder.splice(Number(key), 1) : Reflect.deleteProperty(holder, key)),
    (random, { holder }, places, words) => {
      const value = structuredClone(valueAt(pick(random, places)));
      if (Array.isArray(holder)) holder.push(value);
      else assign({ holder, key: words.length === 0 ? 'x' : pick(random, [...words, '__proto__']) }, value);
    },
    (random, place) => {
      const value = valueAt(place);
      if (typeof value === 'number') assign(place, value + random(5) - 2);
      else if (typeof value === 'string') {
        const at = random(value.length + 1);
        assign(
          place,
          `${value.slice(0, at)}${pick(random, ['', ' ', '0', 'a', '-', '.', '/', ',', ':'])}${value.slice(at + random(2))}`,
        );
      }
    },
  ];

const mutateDocument = (random: Random, text: string, words: readonly string[]): string | undefined => {
  try {
    const root: Record<string, unknown> = { value: JSON.parse(text) };
    const places = placesOf(root);
    pick(random, changes)(random, pick(random, places), places, words);
    return JSON.stringify(root.value).replace(JSON.stringify(nestedMark), () => nested(pick(random, depths)));
  } catch {
    return undefined; // not JSON, or too deep to print again
  }
};

/** The input with one value of its JSON changed; undefined if it is not JSON. */
export const mutateJson = (
  random: Random,
  input: Buffer,
  form: 'value' | 'lines',
  words: readonly string[],
): Buffer | undefined => {
  if (form === 'value') {
    const mutated = mutateDocument(random, input.toString(), words);
    return mutated === undefined ? undefined : Buffer.from(mutated);
  }
  const lines = input.toString().split('\n');
  const at = random(lines.length);
  const mutated = mutateDocument(random, lines[at] ?? '', words);
  return mutated === undefined ? undefined : Buffer.from(lines.with(at, mutated).join('\n'));
};
