// Workers of the real program use the certificate that their primary has read.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { createCertificate } from './support/certificates.ts';
import { createWorld, type Server, startServer, type World } from './support/real-program.ts';

const primaryPid = ({ output }: Server): number => Number(/"pid":(\d+),"event":"started"/.exec(output())?.[1]);

/** The names in the certificates that eight connections in a row are shown, which both workers are among. */
const shownNames = async ({ port }: Server): Promise<readonly string[]> => {
  const names = new Set<string>();
  for (let i = 0; i < 8; i++) {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
    await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
    names.add(String(socket.getPeerCertificate().subject.CN));
    socket.destroy();
  }
  return [...names];
};

/** Files of a certificate, and the way to put one of another name there. */
const createTlsFiles = ({ folder }: World) => {
  const files = { cert: join(folder, 'chain.pem'), key: join(folder, 'tls-key.pem') };
  const install = (name: string): void => {
    const { cert, key } = createCertificate(name);
    writeFileSync(files.cert, cert);
    writeFileSync(files.key, key, { mode: 0o600 });
  };
  const spoil = (): void => writeFileSync(files.cert, 'not a certificate\n');
  return { flags: ['--tls-cert', files.cert, '--tls-key', files.key], install, spoil };
};

/** A module that every process loads first: while the file exists, a worker learns of no new certificate, and writes to the file when one has come. */
const delayingModule = (file: string): string => {
  const text = `import { existsSync, writeFileSync } from 'node:fs';
    const emit = process.emit;
    let hasCome = false;
    const tryEmit = (event, message, ...rest) => {
      if (!process.send || event !== 'message' || message?.kind !== 'reloadTls' || !existsSync(${JSON.stringify(file)}))
        return emit.call(process, event, message, ...rest);
      if (!hasCome) writeFileSync(${JSON.stringify(file)}, 'come');
      hasCome = true;
      setTimeout(tryEmit, 20, event, message, ...rest);
      return true;
    };
    process.emit = tryEmit;`;
  return `data:text/javascript,${encodeURIComponent(text)}`;
};

test('workers: all get the certificate that was there at SIGHUP, also one that takes it when the files have changed again', async () => {
  const other = await createWorld();
  const { flags, install, spoil } = createTlsFiles(other);
  const delayed = join(other.folder, 'delayed');
  install('first');
  const oneWorker = ['--workers', '1', '--verifier-threads', '1', ...flags];
  const renewed = await startServer(other, oneWorker, { NODE_OPTIONS: `--import=${delayingModule(delayed)}` });
  try {
    await renewed.printed(/"event":"started"/);
    writeFileSync(delayed, '');
    install('second');
    process.kill(primaryPid(renewed), 'SIGHUP');
    await expect.poll(() => readFileSync(delayed, 'utf8')).toBe('come'); // the primary has read the files
    install('third');
    rmSync(delayed);
    await renewed.printed(/"event":"reloaded"/);
    expect(await shownNames(renewed)).toEqual(['second']);
    spoil();
    process.kill(primaryPid(renewed), 'SIGHUP');
    await renewed.printed(/"code":"tls_reload_failed"/);
    expect(await shownNames(renewed)).toEqual(['second']);
    expect(renewed.output()).not.toContain('PRIVATE KEY');
  } finally {
    await renewed.stop();
    other.remove();
  }
});
