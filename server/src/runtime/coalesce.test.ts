import { expect, test } from 'vitest';
import { createCoalescer } from './coalesce.ts';

test('coalesce: one step runs at a time, and every call is served by a step that started after it', async () => {
  let begun = 0;
  let underWay = 0;
  let mostAtOnce = 0;
  const { wake } = createCoalescer(async () => {
    begun += 1;
    underWay += 1;
    mostAtOnce = Math.max(mostAtOnce, underWay);
    await new Promise((resolve) => setImmediate(resolve));
    underWay -= 1;
  });
  const first = wake();
  const second = wake();
  await first;
  // In each of the moments between the end of a step and the beginning of the next.
  const asked: Promise<void>[] = [];
  for (let i = 0; i < 10; i += 1) {
    asked.push(wake());
    await Promise.resolve();
  }
  await Promise.all([second, ...asked]);
  expect(mostAtOnce).toBe(1);
  expect(begun).toBe(3);
});
