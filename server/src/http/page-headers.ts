// The headers of what browsers show as pages of ours.

/** No other policy than this one, no guessed types, and no address told to anyone. */
export const pageHeaders = (policy: string): readonly string[] => [
  'Content-Security-Policy',
  policy,
  'X-Content-Type-Options',
  'nosniff',
  'Referrer-Policy',
  'no-referrer',
];
