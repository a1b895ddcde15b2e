import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/*.test.ts'],
    globalSetup: ['test/support/globalSetup.ts'],
    // Builds use all cores by themselves, and a cold or busy machine may take long over one.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
