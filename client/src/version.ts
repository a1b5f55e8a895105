// The release of this package, for the User-Agent header: the one of package.json, which a test holds.
export const clientVersion = '0.1.0';
