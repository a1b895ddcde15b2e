// Lets require() load TypeScript in this thread, with tsx. tsx turns the exports of a module into getters. When
// imported functions are called, these getters take a tenth of a pull's CPU time. So this module replaces the getters
// by their values. The values are final once the module has run, because imports have no cycles and no export is
// reassigned.
const { _extensions } = require('node:module');

require('tsx/cjs/api').register();
const load = _extensions['.ts'];
_extensions['.ts'] = (module, path) => {
  load(module, path);
  module.exports = Object.defineProperty({ ...module.exports }, '__esModule', { value: true });
};
