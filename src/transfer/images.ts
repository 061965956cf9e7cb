/** Images as the store holds them: the parts of OpenAI's chat completions. */
import type { JsonObject, JsonValue } from '../json.ts'
import { isObject } from './guards.ts'

/** A data URL of base64, taken apart. */
export interface DataUrl {
  mediaType: string
  data: string
}

/** An image part that has nothing but its address. */
export function imagePart(url: string): JsonObject {
  return { type: 'image_url', image_url: { url } }
}

/** The address of an OpenAI image part; `detail` is not part of it. */
export function imageUrl(part: JsonValue): string | undefined {
  if (!isObject(part) || part.type !== 'image_url' || !isObject(part.image_url)) return undefined
  return typeof part.image_url.url === 'string' ? part.image_url.url : undefined
}

/** The parts of a data URL such as `data:image/png;base64,…`; undefined for any other address. */
export function parseDataUrl(url: string): DataUrl | undefined {
  const [, mediaType, data] = /^data:([^;,]+);base64,(.*)$/s.exec(url) ?? []
  return mediaType === undefined || data === undefined ? undefined : { mediaType, data }
}
