// Locators of a stream's page for its tests.
import type { Page } from 'playwright-core';

/** Seconds of the reports that the page lists, oldest first. */
export const listed = async (page: Page): Promise<readonly number[]> => {
  const hrefs = await page
    .locator('.report-table tbody a')
    .evaluateAll((links) => links.map((link) => link.getAttribute('href')));
  return hrefs.map((href) => Number(href?.split('/at/')[1])).reverse();
};
