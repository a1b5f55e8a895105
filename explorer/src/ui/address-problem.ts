// What is wrong with a link: an argument of the address that a page ignores.

/** Malformed, or the name of nothing. The text is a sentence that begins with the argument's name. */
export type AddressProblem = { readonly name: string; readonly text: string };
