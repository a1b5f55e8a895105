// Owns showing an address to people: its password is for nobody to read.

/** The address with `***` for its password; anything else as it is. */
export const hidePassword = (url: string): string =>
  url.replace(/^([a-z]+:\/\/[^:@/?]*):[^?]*@/, '$1:***@').replace(/([?&]password=)[^&]*/gi, '$1***');
