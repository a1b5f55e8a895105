// The words for the state of the live connection. "Live" is a stream's status, so the connection is "connected".

/** How a pill shows each state. */
export const liveTexts = {
  off: ['neutral', 'Not connected'],
  connecting: ['neutral', 'Connecting…'],
  live: ['ok', 'Connected'],
  reconnecting: ['warn', 'Reconnecting…'],
} as const;
