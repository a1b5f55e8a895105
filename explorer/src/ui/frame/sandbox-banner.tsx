// The banner of a sandbox: its time, speed and active faults.
import { useExplorer } from '../../state/explorer.ts';

const shownMax = 3;

const describeFaults = (faults: readonly string[]): string => {
  if (faults.length === 0) return 'no faults';
  const more = faults.length > shownMax ? ` and ${faults.length - shownMax} more` : '';
  return `${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}: ${faults.slice(0, shownMax).join(' · ')}${more}`;
};

/** Shown above every page of a sandbox; nothing elsewhere. */
export function SandboxBanner() {
  const { sandbox, clock, times } = useExplorer();
  const shown = sandbox.value;
  if (shown === undefined) return null;
  const time = times.format(Math.floor(clock.nowMs.value / 1_000) * 1_000);
  return (
    <aside class="sandbox-banner" aria-label="Sandbox">
      <strong>Sandbox</strong>
      <span class="sandbox-time">{time}</span>
      <span>{shown.paused ? 'paused' : `speed ${shown.speed}`}</span>
      <span class={shown.faults.length > 0 ? 'sandbox-faults' : undefined}>{describeFaults(shown.faults)}</span>
    </aside>
  );
}
