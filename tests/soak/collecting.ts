// Programs that collect their garbage at set times: what memory is left after it is in use. By itself, a heap of 50 MB may go uncollected for half an hour.

/** For NODE_OPTIONS: each thread of the program collects all of its garbage again and again. */
export const collectEvery = (ms: number): string => {
  const text = `import { setFlagsFromString } from 'node:v8'; import { runInNewContext } from 'node:vm';
    setFlagsFromString('--expose-gc'); setInterval(runInNewContext('gc'), ${ms}).unref();`;
  return `--import=data:text/javascript,${encodeURIComponent(text)}`;
};
