/**
 * Makes the types of the API's answers in src/serve/client/client.d.ts from the schemas of the contract. `npm run docs`
 * writes them, and a test compares them.
 */
import { z } from 'zod';
import { answerSchemas } from '../../src/contract/answerSchemas.ts';
import { manifest } from '../../src/contract/schemas.ts';
import type { Dialect } from '../../src/pages/mirrorOptions.ts';

type Schema = z.core.JSONSchema.BaseSchema;

/** The answers of which the client returns parsed objects, by the names of their types. */
function answersIn(dialect: Dialect): Record<string, z.ZodType> {
  const names: Readonly<Record<string, string>> = { Location: 'ActivityLocation', Output: 'OutputAnswer' };
  const answers = Object.entries(answerSchemas(dialect));
  return {
    ...Object.fromEntries(answers.map(([name, schema]) => [names[name] ?? name.replace(/List$/, 'Page'), schema])),
    MirrorManifest: manifest,
  };
}

function jsonSchemas(dialect: Dialect): Record<string, Schema> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(answersIn(dialect))) registry.add(schema, { id });
  return z.toJSONSchema(registry, { uri: (id) => id }).schemas;
}

const MARKS = /(\/\/ Generated from the schemas[^\n]*\n)[\s\S]*(\/\/ End of the generated types\.\n)/;

/** Replaces the generated types in the text of src/serve/client/client.d.ts. */
export function withAnswerTypes(declarations: string): string {
  if (!MARKS.test(declarations)) throw new Error('client.d.ts has no marks for the generated types');
  const [contract, hiro] = [jsonSchemas('contract'), jsonSchemas('hiro')];
  const types = Object.entries(contract).map(
    ([name, schema]) => `${comment(schema, hiro[name] ?? {}, '')}export interface ${name} ${typeOf(schema, hiro[name] ?? {}, '')}\n`,
  );
  return declarations.replace(MARKS, (_, before: string, after: string) => `${before}${types.join('')}${after}`);
}

const LINE = 120;

/** Returns the comment of a declaration: its description, or those of both dialects if they differ. */
function comment({ description: contract }: Schema, { description: hiro }: Schema, indent: string): string {
  if (contract === undefined) return '';
  const text = contract === hiro ? contract : `Dialect \`contract\`: ${contract} Dialect \`hiro\`: ${hiro}`;
  if (indent.length + text.length + 7 <= LINE) return `${indent}/** ${text} */\n`;
  const lines = text.match(new RegExp(`.{1,${LINE - indent.length - 3}}(?: |$)`, 'g')) ?? [];
  return [`${indent}/**`, ...lines.map((line) => `${indent} * ${line.trimEnd()}`), `${indent} */`, ''].join('\n');
}

/** Returns the type of a schema. `hiro` is the same schema in dialect `hiro`: only descriptions and patterns differ. */
function typeOf(schema: Schema, hiro: Schema, indent: string): string {
  const of = (part: unknown, inHiro: unknown) => typeOf(part as Schema, (inHiro ?? {}) as Schema, indent);
  const { $ref, anyOf, type, properties, required = [], items, prefixItems, additionalProperties } = schema;
  if ($ref !== undefined) return $ref;
  if (Array.isArray(type)) return type.map((each: unknown) => of({ ...schema, type: each }, hiro)).join(' | ');
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum !== undefined) return schema.enum.map(literal).join(' | ');
  if (anyOf !== undefined) return anyOf.map((part, i) => of(part, hiro.anyOf?.[i])).join(' | ');
  if (prefixItems !== undefined) return `readonly [${prefixItems.map((part) => of(part, {})).join(', ')}]`;
  if (type === 'array') {
    const each = of(items, hiro.items);
    return `readonly ${/^\w+$/.test(each) || each.startsWith('{') ? each : `(${each})`}[]`;
  }
  if (properties !== undefined) {
    const keys = Object.entries(properties).map(([key, part]) => {
      const inHiro = (hiro.properties?.[key] ?? {}) as Schema;
      const inner = `${indent}    `;
      const optional = required.includes(key) ? '' : '?';
      return `${comment(part as Schema, inHiro, inner)}${inner}readonly ${key}${optional}: ${typeOf(part as Schema, inHiro, inner)};\n`;
    });
    return `{\n${keys.join('')}${indent}}`;
  }
  if (type === 'object') return `Readonly<Record<string, ${of(additionalProperties, {})}>>`;
  if (schema.not !== undefined) return 'never';
  // A number that may be above 2^53. The client gives it as a string then, because a number would lose digits.
  if (type === 'number') return 'number | string';
  if (type === 'integer') return 'number';
  if (type === 'string' || type === 'boolean' || type === 'null') return type;
  throw new Error(`no type is known for ${JSON.stringify(schema)}`);
}

const literal = (value: unknown): string => (typeof value === 'string' ? `'${value}'` : String(value));
