/** Creates elements. Inserts strings only as text nodes, so that data never becomes markup. */

export type Child = Node | string | undefined;
export type Attributes = Readonly<Record<string, string | number | undefined>>;

/** Creates an HTML element. Omits attributes and children that are undefined. */
export function el<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) element.setAttribute(name, String(value));
  element.append(...children.filter((child) => child !== undefined));
  return element;
}

/** Finds an element of the page by id. Throws if there is none, as on a page of another version than this script. */
export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no #${id}`);
  return element;
}
