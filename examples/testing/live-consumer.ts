// A live consumer on the published TypeScript SDK: keeps the newest price of each stream, across reconnects, repeated and late messages.
// Its tests: npx vitest run examples/testing/live-consumer.test.ts
import { createRequire } from 'node:module';
import { decode } from '@sealpost/client';

type SdkReport = { readonly feedID: string; readonly fullReport: string; readonly observationsTimestamp: number };
type SdkStream = {
  readonly on: (event: string, listener: (value: SdkReport) => void) => SdkStream;
  readonly connect: () => Promise<void>;
  readonly close: () => Promise<void>;
};
type SdkModule = {
  readonly createClient: (config: Readonly<Record<string, unknown>>) => {
    readonly createStream: (feedIds: readonly string[], options: object) => SdkStream;
  };
};

// The SDK is CommonJS without types.
const { createClient }: SdkModule = createRequire(import.meta.url)('@chainlink/data-streams-sdk');

export type ConsumerOptions = {
  readonly url: string;
  readonly wsUrl: string;
  readonly userId: string;
  readonly secret: string;
  readonly feedIds: readonly string[];
  /** Two connections, so that one may fail. */
  readonly ha?: boolean;
  /** Called for each price that is newer than all before it. */
  readonly onPrice: (feedId: string, price: bigint) => void;
};

/** Connects; resolves with the way to stop. */
export const consume = async (options: ConsumerOptions): Promise<() => Promise<void>> => {
  const { url, wsUrl, userId, secret, feedIds, ha = false, onPrice } = options;
  const client = createClient({ apiKey: userId, userSecret: secret, endpoint: url, wsEndpoint: wsUrl, haMode: ha });
  const newest = new Map<string, number>();
  const stream = client.createStream(feedIds, { reconnectInterval: 20, maxReconnectAttempts: 50 });
  stream.on('report', ({ feedID, fullReport, observationsTimestamp }) => {
    if (observationsTimestamp <= (newest.get(feedID) ?? 0)) return; // sent again, or late
    newest.set(feedID, observationsTimestamp);
    onPrice(feedID, decode(fullReport).price);
  });
  stream.on('error', () => {}); // it reconnects
  await stream.connect();
  return () => stream.close();
};
