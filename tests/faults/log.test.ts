import { expect, test } from 'vitest';
import { createWorld, fetchSigned, startServer } from '../support/real-program.ts';

test('log: a node whose log nobody takes any more serves on, and its metrics count what is lost', async () => {
  const world = await createWorld();
  const server = await startServer(world, ['--verifier-threads', '1']);
  const lost = async (): Promise<number> => {
    const text = await (await fetch(`${server.opsUrl}/metrics`)).text();
    return Number(/^sealpost_warnings_total\{code="log_lines_dropped"\} (\d+)$/m.exec(text)?.[1]);
  };
  try {
    expect(await lost()).toBe(0);
    server.child.stdout?.destroy();
    await expect
      .poll(async () => {
        const { status } = await fetchSigned(server.url, `/api/v1/reports/latest?feedID=${world.feedId}`, world);
        expect(status).toBe(200);
        return lost();
      })
      .toBeGreaterThan(0);
  } finally {
    await server.stop();
    world.remove();
  }
});
