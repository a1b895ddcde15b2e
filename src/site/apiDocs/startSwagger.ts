/**
 * Script of the API page. Starts Swagger UI, which the page loads before this script, with the mirror's `openapi.json`.
 */
declare const SwaggerUIBundle: (settings: Readonly<Record<string, unknown>>) => unknown;

const isDark = matchMedia('(prefers-color-scheme: dark)');
const colour = () => document.documentElement.classList.toggle('dark-mode', isDark.matches);
isDark.addEventListener('change', colour);
colour();

SwaggerUIBundle({
  // An absolute URL, because Swagger UI resolves the relative server URL against it.
  url: new URL('../openapi.json', location.href).href,
  dom_id: '#swagger-ui',
  deepLinking: true,
  tryItOutEnabled: true,
  supportedSubmitMethods: ['get'],
  displayRequestDuration: true,
  // No validator badge: it would load an image from another host.
  validatorUrl: null,
});
