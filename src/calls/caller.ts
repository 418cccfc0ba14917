import type { SessionCaller } from '../sessions/sessions.js'

/** Who is calling, once a transport has authenticated it. It names a connection; everything else is looked up afresh. */
export interface Caller extends SessionCaller {
  /** The client application, as it names itself. */
  client?: { name: string; version: string } | undefined
}

/** One `tools/call`, without anything of the transport that carried it. */
export interface ToolRequest {
  name: string
  arguments: Record<string, unknown>
  /** Aborted when the request was cancelled or its stream dropped. */
  signal?: AbortSignal
  /** Set if the client asked for progress; it gets lines for a person, at least every 10 s while the call waits (OP-09). */
  onProgress?: (message: string) => void
}
