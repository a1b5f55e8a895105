// Power cuts: the store lives on a loop device; at a random moment the writer is stopped and the device's image copied as it is, without
// what the kernel had not written yet. The copy is what a machine would find after the cut.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { open } from 'lmdb';
import { openStore } from '../../server/src/store/open.ts';
import { ended, linesOf, type Programs } from './programs.ts';

export type PowerCutResult = {
  readonly cuts: number;
  readonly acknowledged: number;
  readonly lost: number;
  readonly cutsWithLoss: number;
};

const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** A file system to cut the power of. */
export type Disk = {
  readonly name: string;
  readonly megabytes: number;
  /** Makes the file system in an image. */
  readonly format: (image: string) => void;
  readonly mountOptions: string;
};

export const ext4: Disk = {
  name: 'ext4',
  megabytes: 96,
  format: (image) => void run('mkfs.ext4', '-q', image),
  mountOptions: 'loop',
};

/** XFS takes no smaller disk. The copy has the same ID as the disk that is still mounted. */
export const xfs = (mkfs: string): Disk => ({
  name: 'xfs',
  megabytes: 300,
  format: (image) => void run(mkfs, '-q', image),
  mountOptions: 'loop,nouuid',
});

/** Can this process mount a disk? Only root can, where the kernel has the file system. */
export const isMountable = (disk: Disk): boolean => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-power-'));
  try {
    const [image, place] = [join(folder, 'disk.img'), join(folder, 'disk')];
    mkdirSync(place);
    makeDisk(disk, image);
    run('mount', '-o', disk.mountOptions, image, place);
    run('umount', place);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const makeDisk = ({ megabytes, format }: Disk, image: string): void => {
  run('truncate', '-s', `${megabytes}M`, image);
  format(image);
};

/** Cuts the power `cuts` times. `unsynced` is the control: a writer that never flushes, which must lose. Needs root. */
export const runPowerCuts = async (
  programs: Programs,
  disk: Disk,
  cuts: number,
  mode: 'honest' | 'unsynced',
): Promise<PowerCutResult> => {
  const result = { cuts, acknowledged: 0, lost: 0, cutsWithLoss: 0 };
  for (let cut = 0; cut < cuts; cut++) {
    const { acknowledged, lost } = await cutOnce(programs, disk, mode);
    result.acknowledged += acknowledged;
    result.lost += lost;
    result.cutsWithLoss += lost > 0 ? 1 : 0;
  }
  return result;
};

const cutOnce = async (
  programs: Programs,
  disk: Disk,
  mode: 'honest' | 'unsynced',
): Promise<{ acknowledged: number; lost: number }> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-power-'));
  const [image, after, before, found] = ['disk.img', 'after.img', 'disk', 'found'].map((name) =>
    join(folder, name),
  ) as [string, string, string, string];
  try {
    for (const place of [before, found]) mkdirSync(place);
    makeDisk(disk, image);
    run('mount', '-o', disk.mountOptions, image, before);
    const copy = () => void run('cp', '--sparse=always', image, after);
    const acks = await writeUntilCut(programs, join(before, 'store'), mode, copy);
    run('umount', '-l', before);
    run('mount', '-o', disk.mountOptions, after, found);
    const lost =
      mode === 'honest' ? await countLost(join(found, 'store'), acks) : countLostRaw(join(found, 'store'), acks);
    run('umount', found);
    return { acknowledged: acks.size, lost };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

type Acks = Map<string, string>;

const writeUntilCut = async (programs: Programs, store: string, mode: string, cut: () => void): Promise<Acks> => {
  const child = programs.start('writer-program', [store, mode, '1763200000']);
  const acks: Acks = new Map();
  let _timer: NodeJS.Timeout | undefined;
  const end = (): void => {
    child.kill('SIGSTOP');
    cut();
    child.kill('SIGKILL');
  };
  for await (const line of linesOf(child)) {
    const [word, feedId, ms, hash] = line.split(' ');
    // What arrives after the stop was printed before it, so it counts.
    if (word === 'ack') acks.set(`${feedId} ${ms}`, hash as string);
    if (word === 'ack') _timer ??= setTimeout(end, 100 + Math.random() * 400);
  }
  await ended(child);
  return acks;
};

const countLost = async (folder: string, acks: Acks): Promise<number> => {
  const store = await openStore(folder, 'read');
  let lost = 0;
  for (const [key, expected] of acks) {
    const [feedId, ms] = key.split(' ') as [FeedId, string];
    const [report] = await store.reports.at([feedId], Number(ms) / 1_000);
    if (report === undefined || createHash('sha256').update(report.fullReport).digest('hex') !== expected) lost += 1;
  }
  await store.close();
  return lost;
};

// The control writes plain keys; a file that cannot even be opened has lost everything.
const countLostRaw = (folder: string, acks: Acks): number => {
  try {
    const root = open({ path: folder, readOnly: true });
    return [...acks.keys()].filter((key) => root.get(key) === undefined).length;
  } catch {
    return acks.size;
  }
};
