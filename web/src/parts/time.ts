/** The local time at which something began that has lasted `seconds`; with the day if that was not today. */
export function sinceWords(seconds: number): string {
  const began = new Date(Date.now() - seconds * 1000)
  const sameDay = began.toDateString() === new Date().toDateString()
  return new Intl.DateTimeFormat(
    undefined,
    sameDay ? { timeStyle: 'short' } : { dateStyle: 'medium', timeStyle: 'short' },
  ).format(began)
}

/** A duration in its two greatest units. */
export function agoWords(seconds: number): string {
  if (seconds < 60) return 'under a minute'
  const days = Math.floor(seconds / 86_400)
  const hours = Math.floor(seconds / 3600) % 24
  const minutes = Math.floor(seconds / 60) % 60
  if (days > 0) return `${days} d ${hours} h`
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min`
}
