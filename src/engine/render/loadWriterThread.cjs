// Loads writer.ts with tsx, because on Node 20 a worker thread does not inherit the TypeScript loader. The require()
// hooks run in this thread; the import hooks would start one more thread per writer.
try {
  require('tsx/cjs/api').register();
  require('./writerThread.ts');
} catch (error) {
  // At the limit of open files the loader reports a missing module. Opening a file here reports the true error
  // (EMFILE).
  const { closeSync, openSync } = require('node:fs');
  closeSync(openSync(__filename));
  throw error;
}
