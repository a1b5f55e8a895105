// `npm run dev`: runs the demo and restarts it when the source of a package changes. Vite serves the explorer from its source, reloads it in the
// browser, and forwards requests for the API to the demo. Arguments are passed to the demo. Ctrl-C stops both.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve, sep } from 'node:path';
import { parseArgs } from 'node:util';
import { createServer } from 'vite';

const args = process.argv.slice(2);
const { port } = parseArgs({ args, strict: false, options: { port: { type: 'string', default: '7401' } } }).values;
const api = `http://127.0.0.1:${port}`;
process.env.SEALPOST_URL = api; // for vite.config.ts
const vite = await createServer({ configFile: 'explorer/vite.config.ts' });
await vite.listen();
const [page] = vite.resolvedUrls.local;

// `node --watch` does not suit the demo: from Node 24 on it sends messages of its own to the demo's threads.
let demo;
let next; // what to do when the demo has stopped
function start() {
  next = () => process.stderr.write('The demo has stopped.\n');
  const command = ['node_modules/.bin/sealpost', 'demo', ...args];
  demo = spawn(process.execPath, command, { stdio: ['inherit', 'pipe', 'inherit'] });
  // The sign-in link opens the explorer that Vite serves, not the last build.
  demo.stdout.on('data', (text) => process.stdout.write(`${text}`.replaceAll(`${api}/#`, `${page}#`)));
  demo.on('exit', () => {
    demo = undefined;
    next();
  });
}
function stop(then, signal) {
  next = then;
  if (demo === undefined) next();
  else demo.kill(signal);
}
start();

const { workspaces } = JSON.parse(readFileSync('package.json', 'utf8'));
const sources = workspaces.filter((name) => name !== 'explorer').map((name) => resolve(name, 'src') + sep);
let timer;
vite.watcher.add(sources).on('all', (_event, path) => {
  if (!sources.some((folder) => path.startsWith(folder))) return;
  clearTimeout(timer);
  timer = setTimeout(() => stop(start), 100); // one restart when an editor or git writes several files
});

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  process.on(signal, () => {
    void vite.watcher.close();
    clearTimeout(timer);
    stop(() => process.exit(), signal);
  });
