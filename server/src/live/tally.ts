// What the observer learns about a live connection when it ends.
import type { RouteName } from '@sealpost/protocol';
import type { Ending } from './connections.ts';

/** What a connection was sent, counted as it goes; why we ended it, if we did. */
export type Tally = { messages: number; bytes: number; ended: Ending | undefined };

/** Events of live delivery: connections that start and end, delivered reports. */
export type LiveEvent =
  | { readonly kind: 'liveOpened'; readonly route: RouteName }
  | { readonly kind: 'liveDelivered'; readonly route: RouteName; readonly count: number }
  | {
      readonly kind: 'liveEnded';
      readonly route: RouteName;
      readonly requestId: string;
      readonly userId: string;
      readonly messages: number;
      readonly bytes: number;
      readonly durationMs: number;
      /** Why we ended it; null when the client did. */
      readonly reason: Ending | null;
      /** Of a WebSocket. */
      readonly closeCode: number | null;
    };
