// What the page says of a report whose fields it does not know: a schema of a later release, or a known one in another layout (D246).
import { isSchemaVersion, schemaVersionOf } from '@sealpost/protocol';

/** Why the fields of a stream's report are not known: the end of a sentence. */
export function unknownFieldsText(feedId: string): string {
  const version = schemaVersionOf(feedId);
  return isSchemaVersion(version)
    ? `it has another layout of schema version ${version} than the one that this page knows`
    : `it has schema version ${version}, which this page does not know`;
}
