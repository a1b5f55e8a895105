// Explains why a file that a user named cannot be used: what happened, with the path, instead of the system's text.

/** What happened to a file; the system's own text where it is none of the usual cases. */
export const describeFileFailure = (path: string, cause: unknown): string => {
  const { code, message } = Object(cause) as { readonly code?: string; readonly message?: string }; // whatever was thrown: both may be absent
  switch (code) {
    case 'ENOENT':
      return `No such file: ${path}`;
    case 'ENOTDIR':
      return `A file is where a folder is expected: ${path}`;
    case 'EEXIST':
      return `There is already a file: ${path}`;
    case 'EACCES':
    case 'EPERM':
      return `Permission denied: ${path}`;
    case 'EISDIR':
      return `Not a file but a folder: ${path}`;
    case 'EROFS':
      return `Read-only file system: ${path}`;
    case 'ENOSPC':
    case 'EDQUOT':
      return `No space left on the disk: ${path}`;
    default:
      return `${path}: ${message ?? String(cause)}`;
  }
};
