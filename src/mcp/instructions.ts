/** Said once to every client, so that tool schemas can be terse (TQ-01). */
export const INSTRUCTIONS = [
  "Kiki gives you hands on the user's machine, within what its owner allowed.",
  'Start with kiki_session {"action":"list"}, then {"action":"resume","session_ref":"…"}; this adds the session\'s tools.',
  'Every other call carries "_kiki": {"session_ref": "…"}. Calls with side effects also need "idempotency_key": a new unique string for each new call, the same string only to retry the very same call; a retry never runs twice.',
  '"wait_ms" changes how long a call waits before you get a receipt. On a receipt, call kiki_operation {"action":"wait","operation_id":"…"}; never repeat the call.',
  'Large results come as head and tail; kiki_operation {"action":"read"} pages the whole.',
  "Paths are relative to the session's workspace, or absolute inside it. If your tool list does not show a tool that resume named, call it by name all the same.",
].join('\n')
