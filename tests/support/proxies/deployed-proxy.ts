// The proxies of deploy/, as their files are written but for this machine: two nodes that are one, and a port of their own.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProgramName } from '../debian-programs.ts';
import { freePort } from '../free-port.ts';
import { readText } from '../source-tree.ts';

export type DeployedProxy = {
  readonly program: ProgramName;
  readonly file: string;
  readonly adapt: (text: string, port: number, folder: string) => string;
  readonly check: (path: string) => readonly string[];
  readonly serve: (path: string) => readonly string[];
};

export const nginxFrame = (
  servers: string,
  folder: string,
): string => `daemon off; pid ${folder}/nginx.pid; error_log stderr; worker_processes 1;
events {}
http { access_log off;
${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
${servers} }`;

export const deployedProxies: readonly DeployedProxy[] = [
  {
    program: 'nginx',
    file: 'deploy/nginx.conf',
    adapt: (text, port, folder) =>
      nginxFrame(
        text.replace('listen 443 ssl http2', `listen 127.0.0.1:${port}`).replaceAll(/^ *ssl_.*\n/gm, ''),
        folder,
      ),
    check: (path) => ['-t', '-c', path, '-e', 'stderr'],
    serve: (path) => ['-c', path, '-e', 'stderr'],
  },
  {
    program: 'haproxy',
    file: 'deploy/haproxy.cfg',
    adapt: (text, port, folder) =>
      text
        .replace('maxconn 20000', 'maxconn 100')
        .replace('bind :8080', `bind 127.0.0.1:${port}`)
        .replace('bind :8405', `bind ${folder}/figures.sock`),
    check: (path) => ['-c', '-f', path],
    serve: (path) => ['-db', '-f', path],
  },
  {
    program: 'caddy',
    file: 'deploy/Caddyfile',
    adapt: (text, port) => `{\n\tadmin off\n}\n${text.replace(/^streams\.example\.com/m, `http://127.0.0.1:${port}`)}`,
    check: (path) => ['validate', '--adapter', 'caddyfile', '--config', path],
    serve: (path) => ['run', '--adapter', 'caddyfile', '--config', path],
  },
];

/** Starts a proxy, whose program is at `path`, in front of a server; resolves when it has found it. */
export async function startDeployedProxy(
  { program, file, adapt, serve, check }: DeployedProxy,
  path: string,
  folder: string,
  server: { readonly port: number; readonly opsUrl: string },
): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  const port = await freePort();
  const nodes = readText(file)
    .replaceAll(/\bnode[12]:7401\b/g, `127.0.0.1:${server.port}`)
    .replaceAll(/\b7402\b/g, new URL(server.opsUrl).port);
  const config = join(folder, `${program}.conf`);
  writeFileSync(config, adapt(nodes, port, folder));
  execFileSync(path, check(config), { stdio: 'pipe' });
  const child = spawn(path, serve(config), { stdio: ['ignore', 'ignore', 'pipe'] });
  const url = `http://127.0.0.1:${port}`;
  await responds(url, child);
  return { url, child };
}

const responds = async (url: string, child: ChildProcess): Promise<void> => {
  let said = '';
  child.stderr?.on('data', (chunk) => {
    said += chunk;
  });
  for (let left = 100; left > 0; left -= 1) {
    if (child.exitCode !== null) throw new Error(`The proxy ended: ${said}`);
    const response = await fetch(`${url}/time`).catch(() => undefined);
    if (response?.status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`The proxy does not respond: ${said}`);
};
