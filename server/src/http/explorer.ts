// Serves the explorer's files: read into memory once, with their gzip, and found by exact path. They need no account, take no query, and are not in the
// route table. No request path is ever looked up on disk.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Answer, isNotModified, pageHeaders, withGzip } from './answer.ts';

/** A file, ready to be answered with. */
export type ServedFile = {
  readonly whole: Answer;
  /** To a client that has it already, as it was sent and as gzip. */
  readonly unchanged?: readonly [plain: Answer, packed: Answer];
};

/** The file of a path; undefined where there is none. With `orPage`, the page with the status 404 instead: it says what addresses there are. */
export type FindFile = (path: string, orPage?: boolean) => ServedFile | undefined;

/** Nothing but what this server itself serves: no inline code, no other host, no frame around it. */
const explorerPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const headers = [...pageHeaders(explorerPolicy), 'Cross-Origin-Opener-Policy', 'same-origin'];

const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.webmanifest': 'application/manifest+json',
  '.txt': 'text/plain; charset=utf-8',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
};

// The build names what is in here by its content.
const hashedFolder = '/assets/';

/** A folder with more than this is not a build of ours; all of it would be kept in memory. */
const filesMax = 200;
const bytesMax = 16 * 2 ** 20;

/** Where the build puts the files: next to the folders of sources and built code. */
export const explorerFolder = fileURLToPath(new URL('../../public', import.meta.url));

/** The page itself, which then shows what its address names. */
const pagePattern = /^\/(?:alerts|docs|inspect|status|streams\/0x[0-9a-fA-F]{64}(?:\/at\/[0-9]{1,10})?)?$/;

/** Opens the files of a folder. Without a build the page's addresses say how to make one; `onTrouble` gets the cause. */
export function openExplorer(folder: string, onTrouble: (error: unknown) => void): FindFile {
  const files = readFiles(folder, onTrouble);
  const page = files.get('/index.html') ?? notBuilt;
  files.delete('/index.html');
  const notFound: ServedFile = { whole: { ...page.whole, status: 404, cacheControl: 'no-store' } };
  return (path, orPage = false) =>
    files.get(path) ?? (pagePattern.test(path) ? page : orPage && page !== notBuilt ? notFound : undefined);
}

/** Sends a browser to another path of this server. */
export const redirectTo = (location: string): ServedFile => ({
  whole: {
    status: 308,
    body: `${location}\n`,
    contentType: 'text/plain; charset=utf-8',
    cacheControl: 'no-store',
    headers: [...headers, 'Location', location],
  },
});

/** What a request for a file is answered with. */
export function answerFile(
  { whole, unchanged }: ServedFile,
  acceptsGzip: boolean,
  ifNoneMatch: string | undefined,
): Answer {
  if (unchanged === undefined || !isNotModified(ifNoneMatch, whole.tag ?? '')) return whole;
  return unchanged[acceptsGzip && whole.packed !== undefined ? 1 : 0];
}

const readFiles = (folder: string, onTrouble: (error: unknown) => void): Map<string, ServedFile> => {
  try {
    const contents = readFolder(folder);
    return new Map([...contents].map(([path, content]) => [path, createFile(path, content)]));
  } catch (error) {
    onTrouble(error);
    return new Map();
  }
};

/** Plain files alone: what begins with a dot is the build's own business, and no link leads anywhere else. */
const readFolder = (folder: string): ReadonlyMap<string, Buffer> => {
  const contents = new Map<string, Buffer>();
  let bytes = 0;
  const read = (prefix: string): void => {
    for (const entry of readdirSync(join(folder, prefix), { withFileTypes: true })) {
      if (entry.name.startsWith('.')) continue;
      const path = `${prefix}/${entry.name}`;
      if (entry.isDirectory()) read(path);
      if (!entry.isFile()) continue;
      const content = readFileSync(join(folder, path));
      contents.set(path, content);
      bytes += content.length;
      if (contents.size > filesMax || bytes > bytesMax)
        throw new Error(`${folder} has more than ${filesMax} files or ${bytesMax} bytes. Build the explorer again.`);
    }
  };
  read('');
  return contents;
};

const createFile = (path: string, content: Buffer): ServedFile => {
  const cacheControl = path.startsWith(hashedFolder) ? 'public, max-age=31536000, immutable' : 'no-cache';
  const tag = createHash('sha256').update(content).digest('base64url').slice(0, 27);
  const unchanged = { status: 304, cacheControl, headers } as const;
  const whole = {
    status: 200,
    contentType: contentTypes[extname(path)] ?? 'application/octet-stream',
    cacheControl,
    tag,
    headers,
  };
  return {
    whole: { ...whole, ...withGzip(content) },
    unchanged: [
      { ...unchanged, tag },
      { ...unchanged, tag: `${tag}-gz` },
    ],
  };
};

const notBuilt: ServedFile = {
  whole: {
    status: 404,
    body: 'The explorer is not built here. In the folder of the project run "npm run build", then start the server again.\nThe API is described at /openapi.json.\n',
    contentType: 'text/plain; charset=utf-8',
    cacheControl: 'no-store',
    headers,
  },
};
