import { randomUUID } from 'node:crypto'
import { jwtVerify, SignJWT } from 'jose'
import type { Clock } from '../lib/clock.js'
import { KikiError } from '../lib/errors.js'

/** Lifetime of a bridge's credential in seconds (GR-04: at most 10 minutes). */
export const CREDENTIAL_SECONDS = 300
const AUDIENCE = 'kiki-bridge'

export interface LocalCredential {
  connectionId: string
  /** One per bridge process; attachments belong to it. */
  bridgeId: string
}

export interface Credentials {
  issue(credential: LocalCredential): Promise<string>
  /** @throws KikiError `permission_denied` when it is expired, forged, or of another home. */
  verify(token: string): Promise<LocalCredential>
}

/**
 * Short-lived local credentials: signed JWTs, bound to this home by its own key and id, checked once a bridge connection. Those
 * of this process end when either clock says so, those of an earlier host by the wall clock (GU-44).
 */
export function createCredentials({
  key,
  homeId,
  clock,
}: {
  key: Uint8Array
  homeId: string
  clock: Clock
}): Credentials {
  const run = randomUUID()
  return {
    issue({ connectionId, bridgeId }) {
      const seconds = Math.floor(clock.now() / 1000)
      return new SignJWT({ bridge: bridgeId, run, until: clock.monotonic() + CREDENTIAL_SECONDS * 1000 })
        .setProtectedHeader({ alg: 'HS256' })
        .setIssuer(homeId)
        .setAudience(AUDIENCE)
        .setSubject(connectionId)
        .setIssuedAt(seconds)
        .setExpirationTime(seconds + CREDENTIAL_SECONDS)
        .sign(key)
    },
    async verify(token) {
      try {
        const { payload } = await jwtVerify(token, key, {
          algorithms: ['HS256'],
          issuer: homeId,
          audience: AUDIENCE,
          currentDate: new Date(clock.now()),
          requiredClaims: ['sub', 'exp'],
        })
        if (typeof payload.sub !== 'string' || typeof payload.bridge !== 'string') throw new Error('claims are missing')
        if (payload.run === run && !(Number(payload.until) > clock.monotonic())) throw new Error('its time is over')
        return { connectionId: payload.sub, bridgeId: payload.bridge }
      } catch (cause) {
        throw new KikiError('permission_denied', 'The local credential is expired or not of this home.', {
          hint: 'Restart the bridge; it asks for a new one.',
          cause,
        })
      }
    },
  }
}
