// What all parts of the API docs share.
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { SampleLanguage } from '../ui/code-samples.ts';
import type { ApiDocs } from './document.ts';
import type { SampleStreams } from './sample-body.ts';
import type { Sender } from './try-it/exchange.ts';

export type DocsParts = {
  readonly docs: ApiDocs;
  /** Of this server, without a slash at the end. */
  readonly origin: string;
  readonly streams: SampleStreams;
  /** When the page was opened, by the clock of reports. */
  readonly nowSeconds: number;
  readonly language: SampleLanguage;
  readonly setLanguage: (language: SampleLanguage) => void;
  readonly send: Sender;
};

export const DocsContext = createContext<DocsParts | undefined>(undefined);

export function useDocs(): DocsParts {
  const parts = useContext(DocsContext);
  if (parts === undefined) throw new Error('The component is outside of the API docs.');
  return parts;
}
