/** What happens inside the host that other folders react to. */
export interface EventMap {
  /** An operation was accepted, began or ended. */
  'operation.changed': { operationId: string; connectionId: string; sessionRef: string; status: string }
  /** The owner was asked (`asked`), or has answered (`approved`, `denied`). */
  'approval.changed': {
    approvalId: string
    operationId: string
    connectionId: string
    sessionRef: string
    state: string
  }
  /** A session was made, attached, changed or closed. */
  'session.changed': { sessionRef: string; connectionId: string }
  /** A connection's grant or status changed. */
  'connection.changed': { connectionId: string; status: string }
  /** What a connection's clients see in `tools/list` may have changed; with a holder, only that one's view. */
  'catalog.changed': { connectionId: string; holder?: string }
}

export type EventName = keyof EventMap
type Handler<N extends EventName> = (payload: EventMap[N]) => void | Promise<void>

export interface Events {
  on<N extends EventName>(name: N, handler: Handler<N>): () => void
  /** Resolves when every handler is done, so that an emitter can know that streams and children are closed. */
  emit<N extends EventName>(name: N, payload: EventMap[N]): Promise<void>
}

/** Handlers run in the order of registration; one that fails is reported and does not stop the others. */
export function createEvents(onError: (name: EventName, error: unknown) => void): Events {
  const handlers = new Map<EventName, Set<Handler<never>>>()
  return {
    on(name, handler) {
      const set = handlers.get(name) ?? new Set()
      handlers.set(name, set)
      set.add(handler)
      return () => set.delete(handler)
    },
    async emit(name, payload) {
      const running = [...(handlers.get(name) ?? [])].map(async (handler) => (handler as Handler<typeof name>)(payload))
      for (const outcome of await Promise.allSettled(running)) {
        if (outcome.status === 'rejected') onError(name, outcome.reason)
      }
    },
  }
}
