// What is inspected: the text box, "Load an example", "Open a file", and the drop of a file anywhere on the page.

import { SealpostError } from '@sealpost/client';
import { useEffect, useRef, useState } from 'preact/hooks';
import { type Explorer, useExplorer } from '../state/explorer.ts';
import { explainError } from '../state/session.ts';
import { Notice } from '../ui/components.tsx';
import { answerText } from '../ui/report/raw-json.tsx';
import type { ReportSource } from '../ui/report/report-check.ts';
import { formatBytes, readInputFile } from './file.ts';

/** A text, and where it is from. */
export type Given = {
  readonly text: string;
  readonly source: Exclude<ReportSource, { readonly kind: 'server' }>;
  /** What it is, unless the user typed or pasted it. */
  readonly label: string | undefined;
  /** The text of a large file is not shown. */
  readonly isTextVisible: boolean;
};

export const typed = (text: string): Given => ({
  text,
  source: { kind: 'given' },
  label: undefined,
  isTextVisible: true,
});

/** The longest text of a file that the text box shows; layout takes long for more. */
const visibleCharactersMax = 100_000;

/** Streams that are asked for an example. */
const exampleTries = 3;

/** The newest report of a stream of this server if the user may read one; otherwise the example that ships with the page. */
const loadExample = async ({ session, catalog, chunks }: Explorer): Promise<Given> => {
  const client = session.client.peek();
  const readable = session.userId.peek() === undefined ? [] : (await client.feeds()).feeds;
  for (const { feedID } of readable.slice(0, exampleTries)) {
    const answer = await client.latest(feedID).catch((error: unknown) => {
      if (error instanceof SealpostError && error.code === 'report_not_found') return undefined;
      throw error;
    });
    const stream = catalog.find(feedID);
    const name = stream === undefined ? 'a stream' : `${stream.baseAsset}/${stream.quoteAsset}`;
    if (answer !== undefined)
      return { ...typed(answerText(answer.report)), label: `Example: the newest report of ${name} on this server.` };
  }
  const { shippedExample } = await chunks.load(() => import('./example.ts'));
  return {
    text: shippedExample.fullReport,
    source: { kind: 'example', signers: shippedExample.signers },
    label: 'Example of a network for tests. Its stream does not exist, and its price is no market price.',
    isTextVisible: true,
  };
};

type Problem =
  | { readonly kind: 'file'; readonly problem: string; readonly advice: string }
  | { readonly kind: 'example'; readonly error: unknown };

type InputProps = {
  readonly given: Given;
  readonly give: (given: Given) => void;
  readonly isWrong: boolean;
  /** A report is shown below: the input takes little space. */
  readonly isCompact: boolean;
};

/** The ways to give a text other than typing it, and what went wrong with the last one. */
const useGiving = (give: (given: Given) => void) => {
  const explorer = useExplorer();
  const [problem, setProblem] = useState<Problem | undefined>(undefined);
  const latest = useRef(0);
  useEffect(() => () => void latest.current++, []);
  const change = (next: Given): void => {
    latest.current += 1;
    setProblem(undefined);
    give(next);
  };
  /** Takes over a result unless something else was given meanwhile. */
  const take = async (result: Promise<Given | Problem>): Promise<void> => {
    latest.current += 1;
    const own = latest.current;
    const next = await result;
    if (own !== latest.current) return;
    if ('text' in next) change(next);
    else {
      if (next.kind === 'file') give(typed('')); // a verdict below the problem would seem to be the file's
      setProblem(next);
    }
  };
  return {
    problem,
    change,
    open: (files: readonly File[]): void => void take(readFiles(files)),
    show: (): void => {
      const failed = (error: unknown): Problem => ({ kind: 'example', error });
      void take(loadExample(explorer).catch(failed));
    },
  };
};

const readFiles = async (files: readonly File[]): Promise<Given | Problem> => {
  const [file] = files;
  if (file === undefined || files.length > 1)
    return { kind: 'file', problem: `You chose ${files.length} files.`, advice: 'Open one file at a time.' };
  const read = await readInputFile(file);
  if (read.kind === 'wrong') return { ...read, kind: 'file' };
  const label = `${file.name}, ${formatBytes(file.size)}.`;
  return { ...typed(read.text), label, isTextVisible: read.text.length <= visibleCharactersMax };
};

export function ReportInput({ given, give, isWrong, isCompact }: InputProps) {
  const { problem, change, open, show } = useGiving(give);
  const box = useRef<HTMLTextAreaElement>(null);
  const clear = (): void => {
    change(typed(''));
    box.current?.focus(); // the button goes
  };
  const isDragged = useFileDrop(open);
  return (
    <div class={`stack inspect-input ${isCompact ? 'compact' : ''}`}>
      <label class="field">
        <span class={isCompact ? 'unseen' : ''}>
          A full report in hex, a JSON response with reports, or one JSON report per line
        </span>
        <textarea
          class="paste"
          ref={box}
          rows={isCompact ? 2 : 5}
          value={given.isTextVisible ? given.text : ''}
          spellcheck={false}
          autocomplete="off"
          placeholder={
            given.isTextVisible
              ? '0x0009…  or  {"report":{"feedID":"0x0003…","fullReport":"0x0009…"}}'
              : `${given.label} The text is too long to show. Paste a report to replace it.`
          }
          aria-invalid={isWrong}
          aria-describedby="paste-problem"
          onInput={(event) => change(typed(event.currentTarget.value))}
        />
      </label>
      <InputActs {...{ show, open, clear }} canClear={given.text !== ''} label={given.label} />
      {problem?.kind === 'file' && (
        <Notice kind="error" title={problem.problem}>
          {problem.advice}
        </Notice>
      )}
      {problem?.kind === 'example' && <ExampleFailure error={problem.error} retry={show} hasText={given.text !== ''} />}
      {isDragged && (
        <div class="drop-here" aria-hidden="true">
          <p>Drop the file to inspect it</p>
        </div>
      )}
    </div>
  );
}

type ActsProps = {
  readonly show: () => void;
  readonly open: (files: readonly File[]) => void;
  readonly clear: () => void;
  readonly canClear: boolean;
  readonly label: string | undefined;
};

const InputActs = ({ show, open, clear, canClear, label }: ActsProps) => {
  const picker = useRef<HTMLInputElement>(null);
  return (
    <div class="row inspect-acts">
      <button type="button" onClick={show}>
        Load an example
      </button>
      <button
        type="button"
        title="You can also drop a file anywhere on this page."
        onClick={() => picker.current?.click()}
      >
        Open a file
      </button>
      <input
        type="file"
        hidden
        aria-label="File to inspect"
        ref={picker}
        onChange={({ currentTarget }) => {
          open([...(currentTarget.files ?? [])]);
          currentTarget.value = ''; // so that the same file can be opened again
        }}
      />
      {canClear && (
        <button type="button" class="quiet" onClick={clear}>
          Clear
        </button>
      )}
      <p class="small muted" role="status">
        {label}
      </p>
    </div>
  );
};

type ExampleFailureProps = { readonly error: unknown; readonly retry: () => void; readonly hasText: boolean };

/** What the user gave before stays, so the notice says that it is not the example. */
const ExampleFailure = ({ error, retry, hasText }: ExampleFailureProps) => {
  const { problem, advice } = explainError(error);
  return (
    <Notice
      kind="error"
      title={`The example did not load: ${problem}`}
      action={
        <button type="button" onClick={retry}>
          Try again
        </button>
      }
    >
      {advice}
      {hasText && ' Below is still what you gave before, not the example.'}
    </Notice>
  );
};

const hasFiles = ({ dataTransfer }: DragEvent): boolean => dataTransfer?.types.includes('Files') ?? false;

/** Takes files that are dropped anywhere on the page; true while one is dragged over it. */
const useFileDrop = (open: (files: readonly File[]) => void): boolean => {
  const [isDragged, setDragged] = useState(false);
  const current = useRef(open);
  current.current = open;
  useEffect(() => {
    const over = (event: DragEvent): void => {
      if (!hasFiles(event)) return;
      event.preventDefault(); // otherwise the browser opens the file in place of the page
      setDragged(true);
    };
    const leave = (event: DragEvent): void => {
      if (event.relatedTarget === null) setDragged(false);
    };
    const drop = (event: DragEvent): void => {
      setDragged(false);
      if (!hasFiles(event)) return;
      event.preventDefault();
      current.current([...(event.dataTransfer?.files ?? [])]);
    };
    window.addEventListener('dragover', over);
    window.addEventListener('dragleave', leave);
    window.addEventListener('drop', drop);
    return () => {
      window.removeEventListener('dragover', over);
      window.removeEventListener('dragleave', leave);
      window.removeEventListener('drop', drop);
    };
  }, []);
  return isDragged;
};
