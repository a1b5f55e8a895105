// Settings that limit connections, unread bytes, and requests per address: rows of the table in config.ts.
import { limits } from '@sealpost/protocol';
import { perSecond, wholeNumber } from './values.ts';

const unreadBytes = {
  parse: wholeNumber(1_048_576, 1_099_511_627_776),
  expected: 'a whole number of bytes from 1048576 to 1099511627776',
};

export const connectionSettings = {
  publicRequestsPerSecond: {
    env: 'SEALPOST_PUBLIC_REQUESTS_PER_SECOND',
    flag: '--public-requests-per-second <count>',
    defaultText: String(limits.publicRequestsPerSecond),
    ...perSecond,
    help: 'requests per second for each address to files and routes that need no authentication, and to unknown paths',
  },
  connectionsMax: {
    env: 'SEALPOST_CONNECTIONS_MAX',
    flag: '--connections-max <count>',
    defaultText: '16384',
    parse: wholeNumber(16, 1_000_000),
    expected: 'a whole number from 16 to 1000000',
    help: 'connections that a process may have open; near it, those that never authenticated are dropped first',
  },
  connectionsPerAddress: {
    env: 'SEALPOST_CONNECTIONS_PER_ADDRESS',
    flag: '--connections-per-address <count>',
    defaultText: '4096',
    parse: wholeNumber(0, 1_000_000),
    expected: 'a whole number from 0, which means no limit, to 1000000',
    help: 'connections that one address, or one IPv6 /64, may have open in a process; trusted proxies have no limit',
  },
  unreadBytesMax: {
    env: 'SEALPOST_UNREAD_BYTES_MAX',
    flag: '--unread-bytes-max <bytes>',
    defaultText: '268435456',
    ...unreadBytes,
    help: 'bytes that may wait in a process for clients to read them; above it, connections that stalled longest are cut',
  },
  unreadBytesPerAccount: {
    env: 'SEALPOST_UNREAD_BYTES_PER_ACCOUNT',
    flag: '--unread-bytes-per-account <bytes>',
    defaultText: '67108864',
    ...unreadBytes,
    help: 'the same for one account, or one address that does not authenticate',
  },
} as const;
