// Files that commands read: a recording to replay, profiles, reports to decode. The first byte chooses which.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CommandError } from '../../../cli/src/failure.ts';
import { listProfiles } from '../../../cli/src/profiles.ts';
import { runCommand } from '../../../cli/src/sample-session.fixture.ts';
import { mergeRuns, ReplayError, scanRecording } from '../../../sandbox/src/replay/recording.ts';
import { createMaterial, reportJsonOf } from '../material.ts';
import { shapeOf, type Target } from '../target.ts';

type Reading = (path: string, input: Buffer) => Promise<string>;

const readers: Readonly<Record<string, Reading>> = {
  r: async (path) => {
    const recording = await scanRecording(path);
    let [count, before] = [0, Number.NEGATIVE_INFINITY];
    for await (const { second } of mergeRuns(recording)) {
      assert.ok(second >= before, 'a recording is replayed out of order');
      [count, before] = [count + 1, second];
    }
    assert.equal(count, recording.reports, 'a recording is replayed in part');
    return `recording ${Math.min(count, 3)} ${recording.runs.length}`;
  },
  p: async (path) => `profiles ${(await listProfiles(path)).length}`,
  d: async (path) => {
    const { code, stderr } = await runCommand(['report', 'decode', path]);
    assert.ok(code === 0 || code === 1 || code === 2, `decode ended with ${code}: ${stderr.slice(0, 200)}`);
    return `decode ${code} ${shapeOf(stderr.replaceAll(path, ''))}`;
  },
};

export const openFiles = async (): Promise<Target> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-fuzz-files-'));
  const path = join(folder, 'input');
  const { reports } = await createMaterial();
  const lines = reports.slice(0, 4).map((report) => JSON.stringify(reportJsonOf(report)));
  const profiles = JSON.stringify({
    one: { url: 'http://a', userId: 'u', secret: 's' },
    two: { userId: 'u', secretFile: 'f', wsUrl: 'ws://a' },
  });
  const seeds = [
    `r${lines.join('\n')}`,
    `r${lines[1]}\r\n\n${lines[0]}\n`,
    `p${profiles}`,
    `d${lines.join('\n')}`,
    ...reports.map((report) => `d${report}`),
  ];
  return {
    seeds: seeds.map((text) => Buffer.from(text)),
    words: ['\n', 'null\n', '{}\n', '0x', '__proto__'],
    json: 'lines',
    run: async (input) => {
      const name = Object.keys(readers)[(input[0] ?? 0) % 3] ?? '';
      const reader = readers[String.fromCharCode(input[0] ?? 0)] ?? readers[name];
      writeFileSync(path, input.subarray(1), { mode: 0o600 });
      try {
        return await (reader as Reading)(path, input);
      } catch (error) {
        if (error instanceof CommandError || error instanceof ReplayError)
          return shapeOf(error.message.replaceAll(path, ''));
        throw error;
      }
    },
    close: async () => rmSync(folder, { recursive: true, force: true }),
  };
};
