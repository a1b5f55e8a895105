// The release of this package, for the User-Agent header. A test compares it with package.json.
export const clientVersion = '0.1.0';
