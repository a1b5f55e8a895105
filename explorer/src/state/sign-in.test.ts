import { expect, test } from 'vitest';
import { checkCredentials, createSignIn } from './sign-in.ts';

const userId = '6f0660ca-f5ff-45be-958e-340d5b28c692';

test('sign-in: obvious mistakes are explained without a request', () => {
  expect(checkCredentials({ userId: '', secret: 'x' })?.problem).toBe('Enter both the user ID and the secret.');
  expect(checkCredentials({ userId, secret: '' })?.problem).toBe('Enter both the user ID and the secret.');
  expect(checkCredentials({ userId: 'secret', secret: userId })?.problem).toBe('The two fields look swapped.');
  expect(checkCredentials({ userId: '6f0660ca', secret: 'x' })?.problem).toBe('The user ID is incomplete.');
  expect(checkCredentials({ userId: userId.toUpperCase(), secret: 'x' })).toBeUndefined();
});

test('sign-in: opens and closes the dialog', () => {
  const signIn = createSignIn();
  expect(signIn.isOpen.value).toBe(false);
  signIn.open();
  expect(signIn.isOpen.value).toBe(true);
  signIn.close();
  expect(signIn.isOpen.value).toBe(false);
});
