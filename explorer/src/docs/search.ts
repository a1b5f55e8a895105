// Search over the docs: guides, operations, parameters, fields and error codes.
import { type ApiDocs, type DocsOperation, errorAnchor } from './document.ts';
import { bodyForms, schemaRows } from './schema-rows.ts';

export type SearchEntry = {
  /** Where it leads, without `#`. */
  readonly anchor: string;
  readonly kind: 'Guide' | 'Operation' | 'Parameter' | 'Field' | 'Header' | 'Error code';
  readonly title: string;
  /** What it belongs to, or says. */
  readonly context: string;
  /** Lower case; what is searched besides the title. */
  readonly text: string;
};

const resultsMax = 12;
const kindOrder: readonly SearchEntry['kind'][] = ['Operation', 'Guide', 'Error code', 'Parameter', 'Header', 'Field'];

const entry = (anchor: string, kind: SearchEntry['kind'], title: string, context: string, text = ''): SearchEntry => ({
  anchor,
  kind,
  title,
  context,
  text: `${context} ${text}`.toLowerCase(),
});

const operationEntries = (operation: DocsOperation, { schemas }: ApiDocs): readonly SearchEntry[] => {
  const { id, method, path, summary, description = '', parameters, answers } = operation;
  const about = `${method} ${path}`;
  const bodies = answers.flatMap(({ schema }) => (schema === undefined ? [] : bodyForms(schema)));
  const rows = new Map(bodies.flatMap((body) => schemaRows(body, schemas)).map((row) => [row.path, row]));
  const headers = new Map(answers.flatMap((answer) => answer.headers).map((header) => [header.name, header]));
  return [
    entry(id, 'Operation', about, summary, `${id} ${description}`),
    ...parameters.map(({ name, description: text }) => entry(id, 'Parameter', name, about, text)),
    ...[...headers.values()].map(({ name, about: text }) => entry(id, 'Header', name, about, text)),
    ...[...rows.values()].map((row) => entry(id, 'Field', row.path, about, row.about)),
  ];
};

/** Everything that can be found. */
export const searchEntries = (docs: ApiDocs): readonly SearchEntry[] => [
  ...docs.guides.map(({ id, title, text }) => entry(id, 'Guide', title, 'Guide', text)),
  ...docs.groups.flatMap(({ operations }) => operations).flatMap((operation) => operationEntries(operation, docs)),
  ...docs.errors.map(({ code, status, message }) =>
    entry(errorAnchor(code), 'Error code', code, `${status}: ${message}`),
  ),
];

/** The best matches first; every word must occur. Empty for an empty query. */
export function searchDocs(entries: readonly SearchEntry[], query: string): readonly SearchEntry[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const scored = entries.flatMap((entry, index) => {
    const title = entry.title.toLowerCase();
    if (!words.every((word) => title.includes(word) || entry.text.includes(word))) return [];
    const inTitle = words.filter((word) => title.includes(word)).length;
    const isExact = title === query.trim().toLowerCase();
    return [{ entry, score: (isExact ? 100 : 0) + inTitle * 10 - kindOrder.indexOf(entry.kind), index }];
  });
  return scored
    .toSorted((a, b) => b.score - a.score || a.index - b.index)
    .slice(0, resultsMax)
    .map(({ entry }) => entry);
}
