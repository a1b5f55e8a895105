// Sets the theme that the user chose before anything is painted; src/theme.ts owns it.
try {
  const choice = localStorage.getItem('sealpost-theme');
  if (choice === 'light' || choice === 'dark') document.documentElement.dataset.theme = choice;
} catch {
  // A browser that refuses storage shows the system's theme.
}
