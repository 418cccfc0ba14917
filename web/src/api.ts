import { hc, type InferResponseType } from 'hono/client'
import type { OwnerApi } from '../../src/owner/app.js'
import { pageSecret } from './page-secret.js'

/** What `GET /api/status` answers. */
export type HostStatus = InferResponseType<typeof api.status.$get, 200>

/** Answers of a host that hangs are waited for this long, in milliseconds. */
const TIMEOUT_MS = 10_000

/** A refusal of the host. A host that does not answer is a plain error. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly hint: string | undefined,
  ) {
    super(message)
  }
}

const { api } = hc<OwnerApi>(location.origin, { fetch: ownerFetch })

/** The secret goes with each request: the cookie alone is nothing. */
async function ownerFetch(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers)
  const secret = pageSecret.get()
  if (secret !== null) headers.set('X-Kiki-Page', secret)
  if (init.method !== 'GET') headers.set('Content-Type', 'application/json')
  const answer = await fetch(input, { ...init, headers, signal: AbortSignal.timeout(TIMEOUT_MS) })
  if (!answer.ok) throw await apiError(answer)
  return answer
}

async function apiError(answer: Response): Promise<ApiError> {
  const body: unknown = await answer.json().catch(() => undefined)
  const error = (body as { error?: { message?: string; hint?: string } } | undefined)?.error
  return new ApiError(answer.status, error?.message ?? `Kiki answered ${answer.status}.`, error?.hint)
}

export async function getStatus(): Promise<HostStatus> {
  return (await api.status.$get()).json()
}

export async function signIn(code: string): Promise<void> {
  const answer = await (await api.login.$post({ json: { code } })).json()
  if ('page_secret' in answer) pageSecret.set(answer.page_secret)
}

export async function signOut(everywhere: boolean): Promise<void> {
  await (everywhere ? api.logout.all.$post() : api.logout.$post())
  pageSecret.clear()
}
