// Shows a notice in place of a part that throws while it renders, so that the rest of the page stays.
import type { ComponentChildren } from 'preact';
import { useEffect, useErrorBoundary } from 'preact/hooks';
import { Notice } from '../components.tsx';

/** Tries again when `of`, what the part shows, changes. */
export function Boundary({ of, children }: { readonly of: string; readonly children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary();
  useEffect(() => {
    if (error !== undefined) reset();
  }, [of]);
  if (error === undefined) return <>{children}</>;
  return (
    <Notice
      kind="error"
      title="This page could not be shown."
      action={
        <div class="row">
          <button type="button" onClick={reset}>
            Try again
          </button>
          <button type="button" onClick={() => window.location.reload()}>
            Reload
          </button>
        </div>
      }
    >
      {`Try again, or reload the page. The error: ${error instanceof Error ? error.message : String(error)}`}
    </Notice>
  );
}
