// Says that the browser does not keep what the user chose: settings, the watchlist, alerts.
import { useExplorer } from '../../state/explorer.ts';
import { Notice } from '../components.tsx';

const texts = {
  blocked: {
    title: 'Your browser does not keep this: storage is blocked for this site.',
    advice: 'Allow it in the browser’s settings.',
  },
  full: {
    title: 'Your browser does not keep this: its storage for this site is full.',
    advice: 'Delete data of this site in the browser’s settings to make space.',
  },
} as const;

export function UnsavedNotice({ why }: { readonly why: keyof typeof texts }) {
  const { storage } = useExplorer();
  const { title, advice } = texts[why];
  return (
    <Notice
      kind="warning"
      title={title}
      action={
        <button type="button" class="quiet" onClick={storage.dismissRefusal}>
          Dismiss
        </button>
      }
    >
      {`Your watchlist, alerts and settings last until you close or reload this page. ${advice}`}
    </Notice>
  );
}
