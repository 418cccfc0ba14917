import { z } from 'zod'
import { MAX_PAGE } from '../operations/pages.js'
import { kikiArguments } from '../tools/schema.js'

const ref = z.string().max(256)
const operationId = z.string().max(256)

/** Half a character cannot be saved as it is, and nothing is saved otherwise. */
function wellFormed(text: z.ZodString): z.ZodString {
  return text.refine((value) => !/\p{Surrogate}/u.test(value), 'holds half a character (a lone surrogate)')
}

export const sessionArguments = z.strictObject({
  action: z.enum(['list', 'resume', 'new', 'close']),
  session_ref: ref.optional().describe('For resume, new and close'),
  cursor: z.string().max(64).optional().describe('For list: from the page before'),
  _kiki: kikiArguments.optional(),
})

export const operationArguments = z.strictObject({
  action: z.enum(['get', 'wait', 'read', 'cancel', 'list']),
  operation_id: operationId.optional().describe('For all but list'),
  session_ref: ref.optional().describe('For list'),
  wait_ms: z.int().min(0).max(45_000).optional().describe('For wait'),
  part: z.int().min(0).max(10_000).default(0).describe('For read: content block'),
  offset: z.int().min(0).default(0).describe('For read: UTF-16 units or bytes of media'),
  limit: z.int().min(1).max(MAX_PAGE).optional().describe('For read and list'),
  cursor: z.string().max(64).optional().describe('For list'),
  _kiki: kikiArguments.optional(),
})

export const saveTextArguments = z.strictObject({
  session_ref: ref.optional(),
  text: wellFormed(z.string().min(1).max(1_000_000)),
  title: wellFormed(z.string().min(1).max(200)).describe('Up to 200 characters'),
  kind: z.enum(['note', 'user_excerpt', 'assistant_excerpt', 'handoff']),
  related_operations: z.array(operationId).max(100).default([]),
  _kiki: kikiArguments.optional(),
})
