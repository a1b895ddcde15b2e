/** Makes the declarations of the client module: src/serve/client/client.d.ts, with types of answers that are made from their schemas. */
import { z } from 'zod';
import { answerSchemas } from '../contract/answerSchemas.ts';
import { manifest } from '../contract/schemas.ts';
import type { Dialect } from '../pages/mirrorOptions.ts';

type Schema = z.core.JSONSchema.BaseSchema;

const REFERENCES = /^import .*\n|(?:^export type \w+ = Answers\['\w+'\];\n)+/gm;
const REFERENCE = /type (\w+) = Answers\['(\w+)'\]/g;

/** Returns the text of the declarations. `source` is the text of src/serve/client/client.d.ts. */
export function clientTypes(source: string): string {
  const types = new Map(Array.from(source.matchAll(REFERENCE), ([, type = '', schema = '']) => [schema, type]));
  const [contract, hiro] = [jsonSchemas('contract', types), jsonSchemas('hiro', types)];
  describeBoth(contract, hiro);
  const declarations = Object.entries(contract).map(
    ([id, schema]) => `${comment(schema, '')}export interface ${id} ${typeOf(schema, '')}\n`,
  );
  const text = `// Generated from the schemas of the API.\n${declarations.join('')}// End of the generated types.\n`;
  return source.replace(REFERENCES, (references) => (references.startsWith('import') ? '' : text));
}

/** Returns JSON Schemas by the names of their types. `types` has these names by the names of the schemas. */
function jsonSchemas(dialect: Dialect, types: ReadonlyMap<string, string>): Record<string, Schema> {
  const registry = z.registry<{ id: string }>();
  const schemas = Object.entries({ ...answerSchemas(dialect), Manifest: manifest });
  for (const [name, schema] of schemas) registry.add(schema, { id: types.get(name) ?? name });
  return z.toJSONSchema(registry, { uri: (id) => id }).schemas;
}

/** Replaces each description that differs in dialect `hiro` by both. The schemas differ only in descriptions and patterns. */
function describeBoth(schema: Record<string, unknown>, hiro: Record<string, unknown>): void {
  for (const [key, part] of Object.entries(schema)) {
    if (typeof part === 'object' && part !== null) describeBoth(part as Schema, hiro[key] as Schema);
    else if (key === 'description' && part !== hiro[key]) schema[key] = `Dialect \`contract\`: ${part} Dialect \`hiro\`: ${hiro[key]}`;
  }
}

const LINE = 120;

function comment({ description: text }: Schema, indent: string): string {
  if (text === undefined) return '';
  if (indent.length + text.length + 7 <= LINE) return `${indent}/** ${text} */\n`;
  const lines = text.match(new RegExp(`.{1,${LINE - indent.length - 3}}(?: |$)`, 'g')) ?? [];
  return [`${indent}/**`, ...lines.map((line) => `${indent} * ${line.trimEnd()}`), `${indent} */`, ''].join('\n');
}

function typeOf(schema: Schema, indent: string): string {
  const of = (part: unknown) => typeOf(part as Schema, indent);
  const { $ref, anyOf, type, properties, required = [], items, prefixItems, additionalProperties } = schema;
  if ($ref !== undefined) return $ref;
  if (Array.isArray(type)) return type.map((each: unknown) => of({ ...schema, type: each })).join(' | ');
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum !== undefined) return schema.enum.map(literal).join(' | ');
  if (anyOf !== undefined) return anyOf.map(of).join(' | ');
  if (prefixItems !== undefined) return `readonly [${prefixItems.map(of).join(', ')}]`;
  if (type === 'array') {
    const each = of(items);
    return `readonly ${/^\w+$/.test(each) || each.startsWith('{') ? each : `(${each})`}[]`;
  }
  if (properties !== undefined) {
    const inner = `${indent}    `;
    const keys = Object.entries(properties).map(([key, part]) => {
      const optional = required.includes(key) ? '' : '?';
      return `${comment(part as Schema, inner)}${inner}readonly ${key}${optional}: ${typeOf(part as Schema, inner)};\n`;
    });
    return `{\n${keys.join('')}${indent}}`;
  }
  if (type === 'object') return `Readonly<Record<string, ${of(additionalProperties)}>>`;
  if (schema.not !== undefined) return 'never';
  // A number that may be above 2^53. The client gives it as a string then, because a number would lose digits.
  if (type === 'number') return 'number | string';
  if (type === 'integer') return 'number';
  if (type === 'string' || type === 'boolean' || type === 'null') return type;
  throw new Error(`no type is known for ${JSON.stringify(schema)}`);
}

const literal = (value: unknown): string => (typeof value === 'string' ? `'${value}'` : String(value));
