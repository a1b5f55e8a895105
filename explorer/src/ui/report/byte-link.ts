// What is lit up on a report: a field and its bytes, whichever of the two is pointed at, focused or chosen.
import { computed, type ReadonlySignal, signal } from '@preact/signals';

export type ByteLink = {
  /** The link that is lit up now. */
  readonly active: ReadonlySignal<string | undefined>;
  /** The one that stays after a click. */
  readonly chosen: ReadonlySignal<string | undefined>;
  /** Names what is pointed at; undefined when nothing is any more. */
  readonly point: (link: string | undefined) => void;
  /** Keeps a link lit up, or lets it go when it was kept. */
  readonly choose: (link: string) => void;
  readonly clear: () => void;
};

export const createByteLink = (): ByteLink => {
  const pointed = signal<string | undefined>(undefined);
  const chosen = signal<string | undefined>(undefined);
  return {
    active: computed(() => pointed.value ?? chosen.value),
    chosen,
    point: (link) => {
      pointed.value = link;
    },
    choose: (link) => {
      chosen.value = chosen.peek() === link ? undefined : link;
    },
    clear: () => {
      chosen.value = undefined;
      pointed.value = undefined;
    },
  };
};

/** What an element that stands for a link listens to. */
export const linkEvents = ({ point }: ByteLink, link: string) => ({
  onPointerEnter: () => point(link),
  onPointerLeave: () => point(undefined),
  onFocus: () => point(link),
  onBlur: () => point(undefined),
});
