// The pages and their code: the list of streams comes with the first load, every other page when it is opened, or before when the browser
// is idle or a link to it is about to be followed.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { CatalogPage } from './catalog/catalog-page.tsx';
import type { Chunks } from './state/code/chunks.ts';
import { createPageCode, type PageCode } from './state/code/page-code.ts';
import { explainUnknownPath, type PageRoute, parseRoute } from './state/router.ts';
import { Empty, Failure, Loading, useTitle } from './ui/components.tsx';

type Show = (route: PageRoute) => JSX.Element | null;

const loaders = {
  stream: async (): Promise<Show> => {
    const { StreamPage } = await import('./stream/stream-page.tsx');
    return (route) => (route.page === 'stream' ? <StreamPage key={route.feedId} feedId={route.feedId} /> : null);
  },
  report: async (): Promise<Show> => {
    const { ReportPage } = await import('./report/report-page.tsx');
    return (route) =>
      route.page === 'report' ? (
        <ReportPage key={route.feedId} feedId={route.feedId} timestamp={route.timestamp} />
      ) : null;
  },
  alerts: async (): Promise<Show> => {
    const { AlertsPage } = await import('./alerts/alerts-page.tsx');
    return () => <AlertsPage />;
  },
  docs: async (): Promise<Show> => {
    const { DocsPage } = await import('./docs/docs-page.tsx');
    return () => <DocsPage />;
  },
  inspect: async (): Promise<Show> => {
    const { InspectPage } = await import('./inspect/inspect-page.tsx');
    return () => <InspectPage />;
  },
  status: async (): Promise<Show> => {
    const { StatusPage } = await import('./status/status-page.tsx');
    return () => <StatusPage />;
  },
} as const satisfies Partial<Record<PageRoute['page'], () => Promise<Show>>>;

type LazyName = keyof typeof loaders;

const isLazy = (name: string): name is LazyName => Object.hasOwn(loaders, name);

export type ExplorerPages = PageCode<LazyName, Show>;

/** The code of every page but the first. */
export const createPages = (chunks: Chunks): ExplorerPages => createPageCode(loaders, chunks);

/** How long after the first page the others are loaded where the browser does not say when it is idle. */
const idleMs = 2_000;

/** Loads pages before they are opened: one after the other when the browser is idle, at once when a link has the pointer or the focus. */
export function usePreloading(code: ExplorerPages): void {
  useEffect(() => {
    const preloadLink = ({ target }: Event): void => {
      const link = target instanceof Element ? target.closest('a') : null;
      if (link === null || link.origin !== window.location.origin) return;
      const { page } = parseRoute(link.pathname);
      if (isLazy(page)) void code.preload(page);
    };
    document.addEventListener('pointerover', preloadLink);
    document.addEventListener('focusin', preloadLink);
    const stopIdle = onIdle(async () => {
      for (const name of Object.keys(loaders)) if (isLazy(name)) await code.preload(name);
    });
    return () => {
      document.removeEventListener('pointerover', preloadLink);
      document.removeEventListener('focusin', preloadLink);
      stopIdle();
    };
  }, [code]);
}

/** Safari has no requestIdleCallback. */
const onIdle = (act: () => Promise<void>): (() => void) => {
  if (window.requestIdleCallback === undefined) {
    const timer = setTimeout(() => void act(), idleMs);
    return () => clearTimeout(timer);
  }
  const id = window.requestIdleCallback(() => void act());
  return () => window.cancelIdleCallback(id);
};

export function Page({ route, code }: { readonly route: PageRoute; readonly code: ExplorerPages }) {
  const { page } = route;
  if (page === 'catalog') return <CatalogPage />;
  if (page === 'unknown') return <UnknownPage path={route.path} />;
  return <LazyPage key={page} name={page} route={route} code={code} />;
}

const LazyPage = ({
  name,
  route,
  code,
}: {
  readonly name: LazyName;
  readonly route: PageRoute;
  readonly code: ExplorerPages;
}) => {
  const [attempt, setAttempt] = useState<{ readonly count: number; readonly error: unknown }>({
    count: 0,
    error: undefined,
  });
  const show = code.find(name);
  useEffect(() => {
    let isOver = false;
    code.load(name).catch((error: unknown) => {
      if (!isOver) setAttempt((last) => ({ ...last, error }));
    });
    return () => {
      isOver = true;
    };
  }, [code, name, attempt.count]);
  if (show !== undefined) return show(route);
  return attempt.error === undefined ? (
    <Loading label="Loading the page" lines={6} />
  ) : (
    <Failure error={attempt.error} retry={() => setAttempt(({ count }) => ({ count: count + 1, error: undefined }))} />
  );
};

const UnknownPage = ({ path }: { readonly path: string }) => {
  useTitle('Page not found');
  const { text, href, label } = explainUnknownPath(path);
  return (
    <Empty
      title="Page not found"
      level={1}
      action={
        <div class="row">
          {href !== undefined && (
            <a class="button" href={href}>
              {label}
            </a>
          )}
          <a class="button" href="/">
            See all streams
          </a>
        </div>
      }
    >
      {text}
    </Empty>
  );
};
