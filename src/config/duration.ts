const UNITS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Milliseconds of a duration as `config.toml` writes it (`30m`, `12h`, `7d`); undefined for `none`. */
export function durationMs(text: string): number | undefined {
  const match = /^(\d+)([smhd])$/.exec(text)
  if (!match) return undefined
  return Number(match[1]) * UNITS[match[2] as keyof typeof UNITS]
}
