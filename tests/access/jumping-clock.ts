// A clock that jumps, for a program in a process of its own.

/** Makes a program live at a time that a file says, read again at SIGUSR2. */
export const jumpingClock = (file: string): NodeJS.ProcessEnv => {
  const text = `import { readFileSync } from 'node:fs';
    const Real = Date; let offset = 0; const now = () => Real.now() + offset;
    process.on('SIGUSR2', () => { offset = Number(readFileSync(${JSON.stringify(file)}, 'utf8')); });
    globalThis.Date = class extends Real { constructor(...given) { super(...(given.length === 0 ? [now()] : given)); } static now() { return now(); } };`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(text)}` };
};
