// Colors on a terminal; none where NO_COLOR is set.
import { styleText } from 'node:util';

const styles = ['bold', 'dim', 'red', 'green', 'yellow'] as const;
type Style = (typeof styles)[number];

export type Paint = Readonly<Record<Style, (text: string) => string>>;

/** The colors of a stream; other than on a terminal they leave the text as it is. */
export const createPaint = (stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): Paint => {
  const colored = stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb';
  // The stream and its support for colors are known here: newer releases of Node would check process.stdout.
  const paint = (style: Style) => (text: string) =>
    colored ? styleText(style, text, { validateStream: false }) : text;
  return {
    bold: paint('bold'),
    dim: paint('dim'),
    red: paint('red'),
    green: paint('green'),
    yellow: paint('yellow'),
  };
};
