// Runs before everything else. Sets the theme that the user chose (src/ui/theme.ts writes it), and watches the script and the stylesheet of
// the page: what does not arrive is retried, then reported. src/main.tsx removes the element #start once it runs.
(() => {
  const root = document.documentElement;
  root.classList.add('starting'); // hides #start, which is for browsers that do not even get this script
  try {
    const choice = localStorage.getItem('sealpost-theme');
    if (choice === 'light' || choice === 'dark') root.dataset.theme = choice;
  } catch {
    // Storage is blocked: the page has the system's theme.
  }

  const slowMs = 5_000;
  const againMs = 60_000; // two servers of different releases must not send the page back and forth
  const waitsMs = [1_000, 3_000];
  const tries = { script: 0, style: 0 };

  const isStarted = () => document.getElementById('start') === null && document.readyState !== 'loading';

  /** Says what happened, in place of the page, or above it if it is there. */
  const report = (title, advice) => {
    root.classList.remove('starting');
    let place = document.getElementById('start');
    if (place === null) {
      place = document.createElement('div');
      place.id = 'start-problem';
      place.className = 'start';
      document.getElementById('start-problem')?.remove();
      document.body.prepend(place);
    }
    place.setAttribute('role', 'alert');
    const [head, text, button] = ['p', 'p', 'button'].map((name) => document.createElement(name));
    head.textContent = title;
    head.className = 'start-title';
    text.textContent = advice;
    button.textContent = 'Reload';
    button.type = 'button';
    button.addEventListener('click', () => location.reload());
    place.replaceChildren(head, text, button);
  };

  const entryOf = (html) => /<script type="module"[^<>]*\ssrc="([^"]+)"/.exec(html)?.[1];

  /** After an upgrade the files have other names: the page is loaded again, once for each release. */
  const reloadIfUpgraded = async (own) => {
    try {
      const response = await fetch(location.origin + location.pathname, {
        cache: 'reload',
        headers: { Accept: 'text/html' },
      });
      const entry = response.ok ? entryOf(await response.text()) : undefined;
      const [lastMs, lastEntry] = (sessionStorage.getItem('sealpost-reloaded') ?? '0').split(' ');
      const isAgain = lastEntry === entry || Math.abs(Date.now() - Number(lastMs)) < againMs;
      if (entry === undefined || entry === own || isAgain) return;
      sessionStorage.setItem('sealpost-reloaded', `${Date.now()} ${entry}`);
      location.reload();
    } catch {
      // The server is down, or storage is blocked: the next attempt, or the user, reloads.
    }
  };

  const retryScript = async (script) => {
    await reloadIfUpgraded(script.getAttribute('src'));
    const waitMs = waitsMs[tries.script];
    tries.script += 1;
    if (waitMs === undefined)
      return report('Sealpost did not load.', 'Check your connection, then reload. The server may be restarting.');
    setTimeout(() => {
      const again = document.createElement('script');
      again.type = 'module';
      again.crossOrigin = '';
      again.src = script.getAttribute('src');
      script.replaceWith(again);
    }, waitMs);
  };

  const retryStyle = (link) => {
    if (!link.isConnected) return;
    link.remove(); // while it is pending, browsers show nothing
    const waitMs = waitsMs[tries.style];
    tries.style += 1;
    if (waitMs === undefined)
      return report('The styles of this page did not load.', 'It works, but looks wrong. Reload the page.');
    setTimeout(() => {
      const again = document.createElement('link');
      again.rel = 'stylesheet';
      again.href = `${link.getAttribute('href').split('?')[0]}?try=${tries.style}`; // not the connection that hangs
      document.head.append(again);
      watchStyle(again);
    }, waitMs);
  };

  /** A stylesheet of the wrong type counts as loaded, but has no rules. */
  const checkStyle = (link) => {
    if (link.sheet === null || link.sheet.cssRules.length === 0) retryStyle(link);
  };

  const watchStyle = (link) => setTimeout(() => checkStyle(link), slowMs);

  addEventListener(
    'error',
    (event) => {
      const { target } = event;
      if (target instanceof HTMLScriptElement && target.type === 'module') retryScript(target);
      else if (target instanceof HTMLLinkElement && target.rel === 'stylesheet') retryStyle(target);
      else if (target === window && !isStarted())
        report(
          'Sealpost could not start in this browser.',
          `Reload the page, or update the browser. The error: ${event.message}`,
        );
    },
    true,
  );

  addEventListener(
    'load',
    ({ target }) => {
      if (target instanceof HTMLLinkElement && target.rel === 'stylesheet') checkStyle(target);
    },
    true,
  );

  setTimeout(() => {
    for (const link of document.querySelectorAll('link[rel=stylesheet]')) checkStyle(link);
    if (!isStarted()) root.classList.remove('starting');
  }, slowMs);
})();
