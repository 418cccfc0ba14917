import { homeCommand } from '../config/home.js'
import { unsentLine } from './answers.js'
import type { Id, Message } from './message.js'

/** What the relay does to the world; lines carry their newline. */
export interface RelayOutput {
  toClient(line: string | Buffer): void
  /** Only called while a stream is open. */
  toHost(line: string | Buffer): void
  /** One line for standard error. */
  note(text: string): void
  /** The stream is of no use; the bridge has to end. */
  fail(error: Error): void
}

/** A `subscriptions/listen` of the client (2026 era); it lives until it is cancelled, through any number of hosts. */
export interface Listen {
  line: Buffer
  /** Whether the client has seen its acknowledgement. */
  acknowledged: boolean
  /** Passes on the host's friendly end of it, unless the whole stream ends first. */
  ending: NodeJS.Timeout | undefined
}

export interface Waiting {
  line: Buffer
  message: Message & { kind: 'request' | 'notification' }
  timer: NodeJS.Timeout | undefined
}

/** What has to be said again to a new host so that it is in the state that the client believes it to be in (2025 era). */
export interface Opening {
  initialize: Buffer | undefined
  initialized: boolean
  /** Last `logging/setLevel`, and each `resources/subscribe` that stands, by what they set. */
  settings: Map<string, Buffer>
}

/** The protocol state of one bridge. The functions of this folder that take it own it together. */
export interface Relay {
  out: RelayOutput
  /** `waiting`: no host. `replaying`: a new host is being brought into the client's state. `open`: lines pass. */
  phase: 'waiting' | 'replaying' | 'open'
  /** Number of streams so far, this one included. */
  streams: number
  /** The client's requests that the host has not answered, with their methods. */
  pending: Map<Id, string>
  /** Requests that the client cancelled and the host may still answer. */
  cancelled: Set<Id>
  listens: Map<Id, Listen>
  /** The host's requests that the client has not answered: the id that the client sees → the host's id. */
  asked: Map<Id, Id>
  waiting: Waiting[]
  waitingBytes: number
  opening: Opening
  /** Requests of the bridge's own; their answers are not passed on. */
  replays: Map<Id, 'initialize' | 'setting'>
  /** Makes ids that no client uses. */
  idPrefix: string
  /** The home's folder, for what a person is told to run. */
  home: string
}

export function createRelay(out: RelayOutput, idPrefix: string, home: string): Relay {
  return {
    out,
    home,
    phase: 'waiting',
    streams: 0,
    pending: new Map(),
    cancelled: new Set(),
    listens: new Map(),
    asked: new Map(),
    waiting: [],
    waitingBytes: 0,
    opening: { initialize: undefined, initialized: false, settings: new Map() },
    replays: new Map(),
    idPrefix,
  }
}

/** How long a request waits for the host to come back (GU-23). */
const WAIT_MS = 10_000

/** Why a request was given up. */
function away({ home }: Relay): string {
  const start = homeCommand(home, 'start')
  return `Kiki's host is away and did not come back within 10 s. If its owner stopped it, run ${start}, then restart this MCP server in your application.`
}

/** Keeps a line for the next host. Requests are given up after 10 s, except before the first host: its start has its own limit. */
export function wait(relay: Relay, line: Buffer, message: Waiting['message']): void {
  const entry: Waiting = { line, message, timer: undefined }
  if (message.kind === 'request' && relay.streams > 0) {
    entry.timer = setTimeout(() => {
      removeWaiting(relay, entry)
      relay.out.toClient(unsentLine(message.id, away(relay)))
    }, WAIT_MS)
  }
  relay.waiting.push(entry)
  relay.waitingBytes += line.length
}

export function removeWaiting(relay: Relay, entry: Waiting): void {
  clearTimeout(entry.timer)
  relay.waiting = relay.waiting.filter((other) => other !== entry)
  relay.waitingBytes -= entry.line.length
}

/** Takes everything that waits, in order. */
export function takeWaiting(relay: Relay): Waiting[] {
  const all = relay.waiting
  for (const entry of all) clearTimeout(entry.timer)
  relay.waiting = []
  relay.waitingBytes = 0
  return all
}

/** Whether an answer is still owed to the client. */
export function owesAnswer(relay: Relay): boolean {
  return relay.pending.size > 0 || relay.waiting.some(({ message }) => message.kind === 'request')
}

/** Answers everything that waits, because no host will come. */
export function giveUp(relay: Relay, why: string): void {
  for (const { message } of takeWaiting(relay)) {
    if (message.kind === 'request') relay.out.toClient(unsentLine(message.id, why))
  }
  for (const id of relay.pending.keys()) relay.out.toClient(unsentLine(id, why))
  relay.pending.clear()
}
