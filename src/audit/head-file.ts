import { closeSync, lstatSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import writeFileAtomic from 'write-file-atomic'
import { secretFile } from '../config/prepare-home.js'
import { GENESIS, type Head } from './chain.js'

/** What the chain of a home is made with, in its keys folder, each in a 0600 file. */
export interface AuditFiles {
  key: Uint8Array
  head: HeadFile
}

/**
 * The end of the chain as it was last known to be on disk, kept beside the key: by it a log that was cut off at its end is
 * told from one that ends there. It is written after a synced commit, never before: a crash in between leaves it behind
 * the log, which is no fault, and never ahead of it.
 */
export interface HeadFile {
  /** Undefined where it is missing or cannot be understood. */
  read(): Head | undefined
  /** Overwritten in place: one write within one sector of the disk, so that it is either the old or the new one. */
  write(head: Head): void
  close(): void
}

/**
 * Opens both, making what is missing. The home's lock must be held. A key that is there without a head is left without:
 * the head was taken away, and that must show.
 * @throws KikiError `internal_error` where the key is empty, `conflict` where no file stands under its name.
 */
export function openAuditFiles(keysFolder: string): AuditFiles {
  const keyFile = join(keysFolder, 'audit.key')
  const headPath = join(keysFolder, 'audit.head')
  const isNew = !isThere(keyFile)
  // The head first: a crash between the two must not look like a head that was taken away.
  if (isNew && !isThere(headPath)) makeHead(headPath)
  return { key: Buffer.from(secretFile(keyFile), 'base64url'), head: openHead(headPath) }
}

/** The kept head of some keys folder, without making anything. */
export function readHead(keysFolder: string): Head | undefined {
  return readAt(join(keysFolder, 'audit.head'))
}

function openHead(path: string): HeadFile {
  let fd: number | undefined
  return {
    read: () => readAt(path),
    write(head) {
      if (fd === undefined) {
        if (!isThere(path)) makeHead(path)
        fd = openSync(path, 'r+')
      }
      writeSync(fd, textOf(head), 0)
    },
    close() {
      if (fd !== undefined) closeSync(fd)
      fd = undefined
    },
  }
}

function readAt(path: string): Head | undefined {
  if (!isThere(path)) return undefined
  const [, seq, mac] = /^(\d{16}) ([0-9a-f]{64})\n$/.exec(readFileSync(path, 'latin1')) ?? []
  return seq === undefined || mac === undefined ? undefined : { seq: Number(seq), mac }
}

function makeHead(path: string): void {
  writeFileAtomic.sync(path, textOf({ seq: 0, mac: GENESIS }), { mode: 0o600 })
}

/** Always of one length. */
function textOf({ seq, mac }: Head): string {
  return `${String(seq).padStart(16, '0')} ${mac}\n`
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true
}
