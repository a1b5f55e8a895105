import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createLinkedList, type Link } from './linked-list.ts';

test('linked list: as a Set, whatever is added and removed', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(9), { maxLength: 200 }), (commands) => {
      const list = createLinkedList<number>();
      const model = new Set<number>();
      const links = new Map<number, Link<number>>();
      commands.forEach((command, i) => {
        const known = links.get(command);
        if (known === undefined) {
          links.set(command, list.add(i));
          model.add(i);
        } else {
          expect(list.remove(known)).toBe(model.delete(known.value));
          if (i % 2 === 0) links.delete(command); // else it is removed again
        }
        expect(list.first()).toBe([...model][0]);
      });
    }),
  );
});

test('linked list: what was removed points at nothing', () => {
  const list = createLinkedList<number>();
  const links = [1, 2, 3].map(list.add);
  for (const link of links) list.remove(link);
  expect(links).toEqual([1, 2, 3].map((value) => ({ value, before: undefined, after: undefined, isIn: false })));
});
