// What is highlighted on a report: a field and its bytes, when either is hovered, focused or selected.
import { computed, type ReadonlySignal, signal } from '@preact/signals';

export type ByteLink = {
  /** The link that is highlighted now. */
  readonly active: ReadonlySignal<string | undefined>;
  /** The one that stays after a click. */
  readonly chosen: ReadonlySignal<string | undefined>;
  /** Sets what is hovered or focused; undefined for nothing. */
  readonly point: (link: string | undefined) => void;
  /** Keeps a link highlighted; called again, releases it. */
  readonly choose: (link: string) => void;
  readonly clear: () => void;
};

export function createByteLink(): ByteLink {
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
}

/** The event handlers of an element that highlights a link. */
export const linkEvents = ({ point }: ByteLink, link: string) => ({
  onPointerEnter: () => point(link),
  onPointerLeave: () => point(undefined),
  onFocus: () => point(link),
  onBlur: () => point(undefined),
});
