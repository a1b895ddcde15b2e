// Lets require() load TypeScript in this thread, with tsx. tsx makes the exports of a module getters, which take a
// tenth of a pull's CPU time when imported functions are called. So this module replaces the getters by their values.
// The values are final once the module has run, because imports have no cycles and no export is reassigned.
const { _extensions } = require('node:module');

require('tsx/cjs/api').register();
const load = _extensions['.ts'];
_extensions['.ts'] = (module, path) => {
  load(module, path);
  module.exports = Object.defineProperty({ ...module.exports }, '__esModule', { value: true });
};
