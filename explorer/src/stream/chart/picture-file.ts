// The chart as a PNG file, with its name, unit and times in it.

export type PictureTexts = {
  /** `AVAX/USD · CexPrice · USD`. */
  readonly title: string;
  /** `2026-11-15 09:28:17 – 09:33:17 UTC`. */
  readonly range: string;
  /** When it was saved. */
  readonly saved: string;
  /** Each stream with the color of its line; empty unless two are compared. */
  readonly legend: readonly { readonly name: string; readonly color: string }[];
};

export type PictureColors = { readonly background: string; readonly text: string; readonly muted: string };

const [marginPixels, linePixels] = [16, 20];

/** `AVAX-USD_2026-11-15T092817Z_2026-11-15T093317Z.png`. */
export function pictureFileName(name: string, from: number, to: number): string {
  const timeOf = (seconds: number): string =>
    `${new Date(Math.round(seconds) * 1_000).toISOString().slice(0, 19).replaceAll(':', '')}Z`;
  const plain = name.replace(/[^A-Za-z0-9]+/g, '-').replace(/^-|-$/g, '');
  return `${plain === '' ? 'chart' : plain}_${timeOf(from)}_${timeOf(to)}.png`;
}

/** The chart under its texts. `scale`: canvas pixels per CSS pixel. */
const drawPicture = (
  chart: HTMLCanvasElement,
  scale: number,
  texts: PictureTexts,
  { background, text, muted }: PictureColors,
): HTMLCanvasElement => {
  const lines = texts.legend.length === 0 ? 2 : 3;
  const top = (marginPixels + lines * linePixels + linePixels / 2) * scale;
  const picture = document.createElement('canvas');
  picture.width = chart.width + 2 * marginPixels * scale;
  picture.height = chart.height + top + marginPixels * scale;
  const context = picture.getContext('2d');
  if (context === null) return picture;
  context.fillStyle = background;
  context.fillRect(0, 0, picture.width, picture.height);
  context.drawImage(chart, marginPixels * scale, top);
  context.scale(scale, scale);
  context.textBaseline = 'top';
  const write = (line: number, x: number, words: string, color: string, font: string): number => {
    context.font = `${font} system-ui, sans-serif`;
    context.fillStyle = color;
    context.fillText(words, x, marginPixels + line * linePixels);
    return context.measureText(words).width;
  };
  write(0, marginPixels, texts.title, text, '600 15px');
  write(1, marginPixels, `${texts.range} · saved ${texts.saved} · Sealpost`, muted, '12px');
  let x = marginPixels;
  for (const { name, color } of texts.legend) {
    context.fillStyle = color;
    context.fillRect(x, marginPixels + 2 * linePixels + 2, 10, 10);
    x += 16 + write(2, x + 16, name, text, '12px') + 16;
  }
  return picture;
};

/** Saves it; false if the browser cannot make the file. */
export async function savePicture(
  chart: HTMLCanvasElement,
  scale: number,
  texts: PictureTexts,
  colors: PictureColors,
  fileName: string,
): Promise<boolean> {
  const picture = drawPicture(chart, scale, texts, colors);
  const blob = await new Promise<Blob | null>((resolve) => picture.toBlob(resolve, 'image/png'));
  if (blob === null) return false;
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = fileName;
  link.click();
  // After the browser has begun to read it.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  return true;
}
