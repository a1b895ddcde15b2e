/**
 * The script of the page that shows the API's description: starts Swagger UI, whose own script stands before this one, on the mirror's `openapi.json`.
 */
declare const SwaggerUIBundle: (settings: Readonly<Record<string, unknown>>) => unknown;

const isDark = matchMedia('(prefers-color-scheme: dark)');
const colour = () => document.documentElement.classList.toggle('dark-mode', isDark.matches);
isDark.addEventListener('change', colour);
colour();

SwaggerUIBundle({
  // Whole, because the address of the mirror in it is relative to this.
  url: new URL('../openapi.json', location.href).href,
  dom_id: '#swagger-ui',
  deepLinking: true,
  tryItOutEnabled: true,
  supportedSubmitMethods: ['get'],
  displayRequestDuration: true,
  // No badge: it would be an image of another host.
  validatorUrl: null,
});
