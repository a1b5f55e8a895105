// Mutants that no test can find, because they behave as the original does. Each has its reason; one that no longer survives fails the row.

export type Equivalent = {
  readonly path: string;
  /** The source text that Stryker replaces, and what with. */
  readonly from: string;
  readonly to: string;
  readonly because: string;
};

const authenticate = 'server/src/access/authenticate.ts';
const signing = 'protocol/src/request-signing.ts';

export const equivalents: readonly Equivalent[] = [
  { path: signing, from: 'skewMs < 0', to: 'skewMs <= 0', because: 'A difference of 0 has passed before.' },
  {
    path: authenticate,
    from: 'caller === undefined',
    to: 'false',
    because: 'It has no secret ID then. The compiler asks.',
  },
  {
    path: authenticate,
    from: '[createHmacKey(randomBytes(32))]',
    to: '[]',
    because: 'Nobody knows the key that takes its place either. Only the time differs.',
  },
  {
    path: authenticate,
    from: '[]',
    to: '["Stryker was here"]',
    because: 'Nobody signs with the key that this would be the ID of.',
  },
  { path: authenticate, from: "'latin1'", to: '""', because: 'Hex digits are the same bytes in UTF-8.' },
];
