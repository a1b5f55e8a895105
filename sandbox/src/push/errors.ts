// The error of misuse that @sealpost/sandbox and pushed reports share.

/** An argument that cannot be used; the text names it and says what is allowed. */
export class SandboxError extends Error {
  override readonly name = 'SandboxError';
  /** Which argument, such as `streams[0]`. */
  readonly argument: string;

  constructor(argument: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.argument = argument;
  }
}

const shownMax = 80;

/** A value for an error text. */
export function show(value: unknown): string {
  const text =
    typeof value === 'string' ? JSON.stringify(value) : typeof value === 'bigint' ? `${value}n` : plain(value);
  return text.length > shownMax ? `${text.slice(0, shownMax)}…` : text;
}

const plain = (value: unknown): string => {
  if (typeof value !== 'object' || value === null) return String(value);
  try {
    return JSON.stringify(value) ?? 'an object';
  } catch {
    return 'an object';
  }
};

/** The error for a value that an argument cannot have. */
export const unexpected = (argument: string, value: unknown, expected: string): SandboxError =>
  new SandboxError(argument, `${argument} is ${value === undefined ? 'missing' : show(value)}, expected ${expected}.`);
