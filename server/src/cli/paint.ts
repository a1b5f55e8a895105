// Owns colours: on a terminal only, and none where NO_COLOR is set.

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33 } as const;

export type Paint = Readonly<Record<keyof typeof codes, (text: string) => string>>;

/** The colours of a stream; elsewhere than on a terminal they leave the text as it is. */
export const createPaint = (stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): Paint => {
  const coloured = stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
  const paint = (code: number) => (text: string) => (coloured ? `\x1b[${code}m${text}\x1b[0m` : text);
  return {
    bold: paint(codes.bold),
    dim: paint(codes.dim),
    red: paint(codes.red),
    green: paint(codes.green),
    yellow: paint(codes.yellow),
  };
};
