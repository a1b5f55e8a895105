// What comes in at the private listener of a server: reports, and a mirror that asks where to resume.
import type { Server } from '../support/real-program.ts';

export const ingestToken = 'a-token-for-senders';

const post = (url: string, body: string): Promise<Response> =>
  fetch(url, { method: 'POST', headers: { Authorization: `Bearer ${ingestToken}` }, body });

/** The number of lines by their result, such as `stored`. */
export const sendLines = async (
  { opsUrl }: Pick<Server, 'opsUrl'>,
  lines: readonly string[],
): Promise<Readonly<Record<string, number>>> => {
  const response = await post(`${opsUrl}/ingest`, lines.map((line) => `${line}\n`).join(''));
  const counts: Record<string, number> = {};
  for (const line of (await response.text()).trim().split('\n')) {
    const { result = line } = JSON.parse(line) as { result?: string };
    counts[result] = (counts[result] ?? 0) + 1;
  }
  return counts;
};

/** Where a mirror of another deployment resumes. The store remembers the earliest second that was asked for. */
export const askMirror = async (
  { opsUrl }: Pick<Server, 'opsUrl'>,
  feedIDs: readonly string[],
  from: number,
): Promise<unknown> => {
  const asked = { source: 'streams.example.com', feedIDs, from, restart: false, filled: {} };
  const response = await post(`${opsUrl}/ingest/resume`, JSON.stringify(asked));
  if (!response.ok) throw new Error(await response.text());
  return response.json();
};
