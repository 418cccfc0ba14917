/**
 * Requirement rows that can never apply to Kiki, each with a reason that its users would accept, in the form
 * `'XX-00': 'n/a: why'`. A row that is only still to come does not stand here: it is missing until a test cites it.
 * So far every row applies.
 */
export const NOT_APPLICABLE: Readonly<Record<string, `n/a: ${string}`>> = {}
