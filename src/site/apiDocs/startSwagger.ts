/** Script of the API page: starts Swagger UI with the mirror's `openapi.json`. The page loads Swagger UI first. */
declare const SwaggerUIBundle: (settings: Readonly<Record<string, unknown>>) => unknown;

const isDark = matchMedia('(prefers-color-scheme: dark)');
const colour = () => document.documentElement.classList.toggle('dark-mode', isDark.matches);
isDark.addEventListener('change', colour);
colour();

SwaggerUIBundle({
  // Absolute, because Swagger UI resolves the relative server URL against this URL.
  url: new URL('../openapi.json', location.href).href,
  dom_id: '#swagger-ui',
  deepLinking: true,
  tryItOutEnabled: true,
  supportedSubmitMethods: ['get'],
  displayRequestDuration: true,
  // No validator badge, because it would load an image from another host.
  validatorUrl: null,
});
