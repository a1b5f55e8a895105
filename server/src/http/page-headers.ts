// The headers of pages that browsers show.

/** This content policy only, no guessed types, no referrer. */
export const pageHeaders = (policy: string): readonly string[] => [
  'Content-Security-Policy',
  policy,
  'X-Content-Type-Options',
  'nosniff',
  'Referrer-Policy',
  'no-referrer',
];
