import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/hosts/*.test.ts'],
    globalSetup: ['test/support/globalSetup.ts'],
    testTimeout: 300_000,
    hookTimeout: 120_000,
  },
});
