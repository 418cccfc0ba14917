import { InvalidArgumentError } from 'commander'
import { durationMs } from '../config/duration.js'

/** Readers of option values. Each throws commander's error for a value that it does not take: wrong usage. */

export function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('Give a whole number.')
  return Number(text)
}

/** A whole number, or `none` for no limit (commander would make an empty text of null). */
export function limit(text: string): number | 'none' {
  return text === 'none' ? text : wholeNumber(text)
}

/** Words with commas between; an empty text is an empty list. */
export function words(text: string): string[] {
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
}

/** Collects an option that may be given several times. */
export function several(text: string, before: string[] | undefined): string[] {
  if (text === '') throw new InvalidArgumentError('Give a value.')
  return [...(before ?? []), text]
}

/** `off`, `on`, or the hosts that may be reached. */
export function network(text: string): 'off' | 'on' | string[] {
  if (text === 'off' || text === 'on') return text
  const hosts = words(text)
  if (hosts.length === 0) throw new InvalidArgumentError('Give off, on, or hosts with commas between.')
  return hosts
}

/** A moment as milliseconds since 1970: a date (UTC where it names no zone), a duration from now, or `none`. */
export function expiry(text: string): number | 'none' {
  if (text === 'none') return text
  const duration = durationMs(text)
  if (duration !== undefined) return Date.now() + duration
  const zoned = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?$/.test(text) ? `${text}Z` : text
  const time = /^\d{4}-\d{2}-\d{2}(T[\d:.]+(Z|[+-]\d{2}:\d{2}))?$/.test(zoned) ? Date.parse(zoned) : Number.NaN
  if (Number.isNaN(time))
    throw new InvalidArgumentError('Give a date such as 2031-12-31, a duration such as 30d, or none.')
  if (time <= Date.now()) throw new InvalidArgumentError('It lies in the past.')
  return time
}

/** What the owner API takes for `none`. */
export function nullable(value: number | 'none' | undefined): number | null | undefined {
  return value === 'none' ? null : value
}
