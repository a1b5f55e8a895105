// A settlement job: settles trades at the price of their own second, each once, and leaves open what has no price yet.
// Its tests: node --test examples/testing/settlement-job.test.mjs
import { decode, SealpostError } from '@sealpost/client';

/** How long a trade waits for its price before it is given up. */
const giveUpSeconds = 300;

/**
 * Settles what can be settled. `book` maps the ID of each trade to its price; a trade in it is done.
 * @param {import('@sealpost/client').Client} client
 * @param {{ id: string, stream: string, second: number }[]} trades
 * @param {Map<string, string>} book
 * @param {number} now in Unix seconds
 */
export const settle = async (client, trades, book, now) => {
  const open = [];
  for (const { id, stream, second } of trades.filter(({ id }) => !book.has(id))) {
    try {
      // Never the nearest report: the one that is valid at that second.
      const { report } = await client.at(stream, second);
      book.set(id, decode(report).priceText);
    } catch (error) {
      if (!(error instanceof SealpostError)) throw error;
      if (error.code === 'report_not_found' && now - second > giveUpSeconds) book.set(id, 'no price');
      else open.push(id);
    }
  }
  return { open };
};
