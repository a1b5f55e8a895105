// Shows an element on the full screen, or where the browser has no full screen for elements, over the whole window.
import type { RefObject } from 'preact';
import { useEffect, useState } from 'preact/hooks';

export type FullScreen = {
  /** `window` fills the window only. */
  readonly mode: 'off' | 'screen' | 'window';
  readonly toggle: () => void;
};

export function useFullScreen(element: RefObject<HTMLElement | null>): FullScreen {
  const [mode, setMode] = useState<FullScreen['mode']>('off');
  useEffect(() => {
    const follow = (): void => {
      if (document.fullscreenElement === null) setMode((last) => (last === 'screen' ? 'off' : last));
      else if (document.fullscreenElement === element.current) setMode('screen');
    };
    document.addEventListener('fullscreenchange', follow);
    return () => document.removeEventListener('fullscreenchange', follow);
  }, []);
  useEffect(() => {
    if (mode === 'off') return undefined;
    const leave = (): void => {
      if (mode === 'screen')
        void document.exitFullscreen().catch(() => {}); // the browser was faster
      else setMode('off');
    };
    const onKey = ({ key, defaultPrevented }: KeyboardEvent): void => {
      if (key === 'Escape' && !defaultPrevented) leave();
    };
    // What is behind cannot be seen: the focus must not be there.
    const onFocus = ({ target }: FocusEvent): void => {
      if (target instanceof Node && element.current?.contains(target) === false) leave();
    };
    document.addEventListener('keydown', onKey);
    document.addEventListener('focusin', onFocus);
    return () => {
      document.removeEventListener('keydown', onKey);
      document.removeEventListener('focusin', onFocus);
    };
  }, [mode]);
  const enter = async (): Promise<void> => {
    try {
      await element.current?.requestFullscreen();
    } catch {
      setMode('window'); // not allowed here, or the browser has it for videos only
    }
  };
  const toggle = (): void => {
    if (mode === 'off') void enter();
    else if (mode === 'screen') void document.exitFullscreen();
    else setMode('off');
  };
  return { mode, toggle };
}
